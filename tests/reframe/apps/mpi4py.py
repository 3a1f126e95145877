"""mpi4py: buffers, pickled objects and a file go through the MPI under test."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import SOURCES, AppMixin

COUNT = 4099  # numbers of each rank in the file of src/mpi4py_exchange.py


@rfm.simple_test
class Mpi4py(rfm.RunOnlyRegressionTest, AppMixin):
    """mpi4py sums buffers, exchanges pickled objects and shares a file, value by value right."""

    software = "mpi4py"
    tags = {"app", "nightly", "mpi4py"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def trace(self):
        self.trace_loader("python3", str(SOURCES / "mpi4py_exchange.py"))


def complaints(text, ranks):
    """What is wrong with what src/mpi4py_exchange.py printed."""
    spread = judging.numbers(r"^mpi4py \S+, (\d+) ranks, (\d+) numbers in the file$", text, 2)
    wrong = judging.numbers(
        r"^wrong: sums (\d+), objects (\d+), file (\d+), file read plainly (\d+)$", text, 4
    )
    return [
        *judging.equal("ranks, numbers in the file", spread, (ranks, ranks * COUNT)),
        *judging.equal("wrong sums, objects, numbers by MPI-IO, plainly", wrong, (0, 0, 0, 0)),
    ]


def figures(text):
    """The time of an allreduce of one double, Python's share in it."""
    return judging.finite({"allreduce": "us"}, [judging.number(r"^allreduce (\S+) us$", text)])
