"""HPC Challenge: a real program over the MPI under test, verified by its own residual checks."""

import reframe as rfm
from reframe.core.builtins import run_before

from app_mixin import AppMixin
from hpcc_output import FIGURES, complaints, input_file, summary

__all__ = ["Hpcc", "complaints", "figures"]


@rfm.simple_test
class Hpcc(rfm.RunOnlyRegressionTest, AppMixin):
    """HPL, PTRANS, DGEMM, STREAM, RandomAccess and FFT on two ranks, a problem of seconds."""

    software = "HPCC"
    tags = {"bench", "nightly"}
    ranks = 2
    results = ["hpccoutf.txt"]

    @run_before("run")
    def prepare(self):
        self.write_input("hpccinf.txt", input_file(self.num_tasks))
        self.trace_loader("hpcc")


def figures(text):
    """What HPCC's summary says, name → (value, unit)."""
    values = summary(text)
    return {name: (float(values[name]), unit) for name, unit in FIGURES.items()}
