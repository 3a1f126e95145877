"""OMB-Py: the OSU Micro-Benchmarks in Python run through all sizes."""

import math
import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

SIZES = [1 << power for power in range(17)]  # 1 B to 64 KiB


@rfm.simple_test
class OmbPy(rfm.RunOnlyRegressionTest, AppMixin):
    """The benchmark allgather of OMB-Py, NumPy's buffers, has a time for each size."""

    software = "OMB-Py"
    tags = {"app", "nightly", "omb-py"}
    ranks = parameter([2, 4])

    @run_before("run")
    def trace(self):
        sizes = ("--min", str(SIZES[0]), "--max", str(SIZES[-1]))
        self.trace_loader(
            "omb-py", "--benchmark", "allgather", "--buffer", "numpy", "--iterations", "100", *sizes
        )


def times(text):
    """Size → microseconds."""
    return {int(size): float(time) for size, time in re.findall(r"^(\d+) +(\d+\.\d+)$", text, re.M)}


def complaints(text, ranks):
    """What is wrong with its table. It moves bytes that nobody looks at: mpi4py's check does."""
    table = times(text)
    wrong = [f"{size} bytes took {time} us" for size, time in table.items() if time <= 0]
    if not re.search(r"^# OMB Python MPI Allgather Test$", text, re.M):
        wrong.append("its heading is missing")
    return [*judging.equal("sizes", sorted(table), SIZES), *wrong]


def figures(text):
    """The time of the smallest and of the largest allgather, Python's share in it."""
    ends = [times(text).get(size, math.nan) for size in (SIZES[0], SIZES[-1])]
    return judging.finite({"allgather_1B": "us", "allgather_64KiB": "us"}, ends)
