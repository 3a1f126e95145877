"""Charm++: its megatest, of objects on all ranks that send each other what can be sent."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

TESTS = 30


@rfm.simple_test
class Charmpp(rfm.RunOnlyRegressionTest, AppMixin):
    """megatest comes to its end on these ranks."""

    software = "Charmpp"
    tags = {"app", "nightly", "charmpp"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        self.trace_loader('"$(dirname "$(command -v charmc)")"/../share/megatest/pgm')
