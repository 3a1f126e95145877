"""GASNet: what is put, got and sent in active messages between processes is right, beside MPI."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

BLOCK, MESSAGES = 4099, 100  # as in src/gasnet_ring.c


@rfm.simple_test
class Gasnet(rfm.RegressionTest, AppMixin):
    """Puts and gets round the ring, active messages to one process, sums by MPI agree."""

    software = "GASNet"
    tags = {"app", "nightly", "gasnet"}
    ranks = parameter([1, 2, 4])
    sourcepath = "gasnet_ring.c"
    # each process its own node, so that MPI carries what shared memory would
    env_vars = {"GASNET_SUPERNODE_MAXSIZE": "1", "GASNET_HOST_DETECT": "hostname"}
    # GASNet's libraries are static; its headers ask for the kind of threads they are used with
    links = ["-lgasnet-mpi-seq", "-lammpi"]

    @run_before("compile")
    def use_mpi_conduit(self):
        """Take the headers of the conduit over MPI, from beside those of all conduits."""
        self.build_system.cflags += [
            "-DGASNET_SEQ",
            "${CPATH:+-I${CPATH//:/\\/mpi-conduit -I}/mpi-conduit}",
        ]


def complaints(text, ranks):
    """What is wrong with what src/gasnet_ring.c printed."""
    line = r"^gasnet (\d+) processes, (\d+) ranks, (\d+) numbers, (\d+) messages$"
    spread = judging.numbers(line, text, 4)
    wrong = judging.numbers(r"^wrong: put (\d+), get (\d+), messages (\d+), MPI (\d+)$", text, 4)
    return [
        *judging.equal(
            "processes, ranks, numbers, messages", spread, (ranks, ranks, BLOCK, ranks * MESSAGES)
        ),
        *judging.equal("wrong numbers put, got, messages, sums by MPI", wrong, (0, 0, 0, 0)),
    ]


def figures(text):
    """The time of a put of one number."""
    return judging.finite({"put": "us"}, [judging.number(r"^put (\S+) us$", text)])
