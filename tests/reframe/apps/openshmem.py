"""OpenSHMEM: what is put, got and counted in another process's memory is right, beside MPI."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

BLOCK, TICKETS = 4099, 100  # as in src/openshmem_ring.c


@rfm.simple_test
class OpenShmem(rfm.RegressionTest, AppMixin):
    """Puts and gets round the ring, atomics at one process, sums of OpenSHMEM and MPI agree."""

    software = "Sandia-OpenSHMEM"
    tags = {"app", "nightly", "openshmem"}
    ranks = parameter([1, 2, 4])
    sourcepath = "openshmem_ring.c"
    libraries = ["libsma.so"]
    links = ["-lsma"]


def complaints(text, ranks):
    """What is wrong with what src/openshmem_ring.c printed."""
    line = r"^openshmem (\d+) PEs, (\d+) ranks, (\d+) numbers, (\d+) tickets$"
    spread = judging.numbers(line, text, 4)
    wrong = judging.numbers(r"^wrong: put (\d+), get (\d+), tickets (\d+), MPI (\d+)$", text, 4)
    return [
        *judging.equal(
            "PEs, ranks, numbers, tickets", spread, (ranks, ranks, BLOCK, ranks * TICKETS)
        ),
        *judging.equal("wrong numbers put, got, tickets, sums by MPI", wrong, (0, 0, 0, 0)),
    ]


def figures(text):
    """The time of a put of one number and of waiting for it."""
    return judging.finite({"put": "us"}, [judging.number(r"^put (\S+) us$", text)])
