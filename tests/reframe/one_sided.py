"""One-sided communication gives the right values."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class OneSided(rfm.RegressionTest, MvapichStackMixin):
    """Put, get, accumulate and atomics between four ranks, in windows of either kind."""

    sourcepath = "one_sided.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("init")
    def ask_for_ranks(self):
        """Four, so that several ranks change the same memory at once."""
        self.num_tasks = 4

    @sanity_function
    def every_value_is_right(self):
        text = self.output()
        if found := re.search(r"^wrong (.*)$", text, re.M):
            raise SanityError(f"one-sided communication gave a wrong value: {found[1]}")
        if not re.search(r"^right one-sided communication of 4 ranks$", text, re.M):
            raise SanityError(
                "the program did not finish: an operation of one-sided communication hangs, or a "
                "rank died"
            )
        return True
