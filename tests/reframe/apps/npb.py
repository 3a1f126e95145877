"""NAS Parallel Benchmarks: eight kernels, each of which knows its own result."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

KERNELS = ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")
# In class A, seconds each; the others in class S, which takes no time. These spend their time in
# MPI: CG sends and receives, FT is an alltoall, IS an alltoallv, MG swaps faces of many sizes.
MEASURED = ("CG", "FT", "IS", "MG")
TRACED = "CG"  # the last
SQUARE = ("BT", "SP")  # compute on a square number of ranks, and leave the rest idle
REPORT = r"^ (\w\w) Benchmark Completed\.?$(.*?)^ Version "


@rfm.simple_test
class Npb(rfm.RunOnlyRegressionTest, AppMixin):
    """All eight kernels verify their results on these ranks."""

    software = "NPB"
    tags = {"app", "nightly", "npb"}
    ranks = parameter([1, 2, 4])
    results = ["kernels.txt"]

    # else BT and SP end on ranks that are no square
    env_vars = {"NPB_NPROCS_STRICT": "off"}

    @run_before("run")
    def prepare(self):
        before = [program(kernel) for kernel in KERNELS if kernel != TRACED]
        self.prerun_cmds = [
            *self.prerun_cmds,
            *(f"{self.before(one, self.num_tasks)} >> kernels.txt" for one in before),
        ]
        self.trace_loader(program(TRACED))


def program(kernel):
    """The program of a kernel, in the class in which it runs."""
    return f"{kernel.lower()}.{'A' if kernel in MEASURED else 'S'}.x"


def reports(text):
    """What each kernel reported of itself at its end: {kernel: text}."""
    return dict(re.findall(REPORT, text, re.M | re.S))


def complaints(text, ranks):
    """What is wrong with what the kernels printed."""
    said = reports(text)
    found = judging.equal("kernels that came to their end", sorted(said), sorted(KERNELS))
    for kernel, report in said.items():
        running = int(ranks**0.5) ** 2 if kernel in SQUARE else ranks
        verified = r"^ Verification +=  *SUCCESSFUL$"
        found += judging.said(verified, report, f"{kernel} did not verify its result")
        total = judging.number(r"^ Total processes = +(\d+)$", report)
        active = judging.number(r"^ Active processes= +(\d+)$", report)
        found += judging.equal(
            f"{kernel}'s processes, and those that compute", (total, active), (ranks, running)
        )
    return found


def figures(text):
    """The rates of the kernels in class A."""
    said = reports(text)
    pattern = r"^ Mop/s total +=  +(\S+)$"
    rates = [judging.number(pattern, said.get(kernel, "")) for kernel in MEASURED]
    return judging.finite({f"{kernel}_A": "Mop/s" for kernel in MEASURED}, rates)
