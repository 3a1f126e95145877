"""Charm++: its megatest, of objects on all ranks that send each other what can be sent."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

TESTS = 55  # of 8.0.0
PROGRAM = '"$(dirname "$(command -v charmc)")"/../share/megatest/megatest'


@rfm.simple_test
class Charmpp(rfm.RunOnlyRegressionTest, AppMixin):
    """Every test of megatest that begins comes to its end, on these ranks."""

    software = "Charmpp"
    tags = {"app", "nightly", "charmpp"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        self.trace_loader(PROGRAM)


def complaints(text, ranks):
    """What is wrong with what megatest printed."""
    running = judging.number(r"^Megatest is running on \d+ nodes (\d+) processors\.", text)
    found = judging.equal("processors", running, ranks)
    begun = re.findall(r"^test (\d+): initiated", text, re.M)
    ended = re.findall(r"^test (\d+): completed", text, re.M)
    found += judging.equal("tests that began and did not end", sorted({*begun} - {*ended}), [])
    found += judging.equal("tests", len(ended), TESTS)
    ended_well = r"^All tests completed, exiting$"
    return found + judging.said(ended_well, text, "megatest did not come to its end")


def figures(_text):
    """None: it measures nothing."""
    return {}
