"""Ranks of a node do not share a core while others of the job are idle."""

import re

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function
from reframe.core.exceptions import SanityError

from crowding import crowded
from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Binding(rfm.RegressionTest, MvapichStackMixin):
    """Ranks are bound to cores of their own, or to none; where they cannot, to all of the job."""

    sourcepath = "binding.c"
    tags = {"smoke", "correct"}

    @run_before("run")
    def tell_own_processors(self):
        """What the job script itself may use: on a machine that is shared by `taskset`, too."""
        self.prerun_cmds = [
            *self.prerun_cmds,
            'echo "job on $(uname -n): $(sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" '
            '/proc/self/status)"',
        ]

    @sanity_function
    def no_core_is_crowded(self):
        text = self.output()
        said = re.findall(r"^rank (\d+) on", text, re.M)
        if sorted(map(int, said)) != list(range(self.num_tasks)):
            raise SanityError(
                f"{self.num_tasks} ranks were started, and {len(said)} said where they may run; "
                f"see the check WorldSize"
            )
        if wrong := crowded(text):
            raise SanityError(wrong)
        return True
