"""Collectives do not disturb each other, in any order, when ranks come late."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class MixedCollectives(rfm.RegressionTest, MvapichStackMixin):
    """1,000 collectives in random order, on changing communicators, with ranks that come late."""

    sourcepath = "collectives_mixed.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("init")
    def ask_for_ranks(self):
        """Four ranks are enough for a tree, and end soon on two cores."""
        self.num_tasks = 4
        self.executable_opts = ["1000"]

    @sanity_function
    def every_value_is_right(self):
        text = self.output()
        wrong = re.findall(r"^wrong (.*)$", text, re.M)
        if wrong:
            raise SanityError(f"wrong results; the first: {wrong[0]}")
        if not re.search(r"^right 1000 rounds on 4 ranks$", text, re.M):
            raise SanityError("the program did not finish: a collective hangs, or a rank died")
        return True
