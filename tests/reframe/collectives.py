"""Collectives give the right values, at every size, on every rank."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

WIDTH = {"int": 4, "double": 8}
COLLECTIVES = (
    *("bcast", "reduce", "allreduce", "gather", "gatherv", "scatter", "scatterv", "allgather"),
    *("allgatherv", "alltoall", "alltoallv", "alltoallw", "reduce_scatter", "reduce_scatter_block"),
    *("scan", "exscan", "ibcast", "iallreduce", "ialltoall", "igather", "iscatter", "iallgather"),
    *("neighbor_allgather", "neighbor_alltoall", "allreduce_init"),
)
ODD = (3, 7, 129, 1021, 16385)
LARGEST = 20  # the power of two of the bytes of a rank


def expected(few, without=""):
    """What is printed of a run: collective, type, elements. ``few``: the argument was given.

    ``without`` is a collective that the MPI's standard does not have.
    """
    return {
        (what, kind, count)
        for what in COLLECTIVES
        if what != without
        for kind, width in list(WIDTH.items())[: 1 if few else 2]
        for count in (*(2**power for power in range(0, LARGEST + 1, 2 if few else 1)), *ODD)
        if count * width <= 2**LARGEST
    }


@rfm.simple_test
class Collectives(rfm.RegressionTest, MvapichStackMixin):
    """Twenty-five collectives of int and double on two and three ranks, each element compared."""

    ranks = parameter([2, 3], loggable=True)
    sourcepath = "collectives.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("setup")
    def on_these_ranks(self):
        """Three ranks on two processors wait for each other: they get fewer sizes."""
        self.ask_for(self.ranks)
        self.executable_opts = ["all"] if self.ranks == 2 else ["all", "few"]

    @sanity_function
    def every_value_is_right(self):
        text = self.output()
        wrong = re.findall(r"^wrong (.*)$", text, re.M)
        if wrong:
            raise SanityError(f"{len(wrong)} wrong results; the first: {wrong[0]}")
        hung = re.findall(r"^hung (.*)$", text, re.M)
        if hung:
            raise SanityError(f"a collective does not end: {hung[0]}")
        rows = re.findall(r"^right (\w+) (\w+) (\d+)$", text, re.M)
        if len(rows) != len(set(rows)):
            raise SanityError(
                "results were printed more than once: the ranks are worlds of their own; see the "
                "check WorldSize"
            )
        older = re.search(r"^without (\w+): MPI [\d.]+$", text, re.M)
        wanted = expected("few" in self.executable_opts, older[1] if older else "")
        left = re.findall(r"^left (\w+) (\w+) (\d+)$", text, re.M)
        wanted -= {
            (what, kind, int(count))
            for what, kind, count in left
            if int(count) * WIDTH[kind] * self.num_tasks > 2**LARGEST
        }
        missing = wanted - {(what, kind, int(count)) for what, kind, count in rows}
        if missing:
            raise SanityError(
                f"{len(missing)} of {len(wanted)} results were never printed, among them "
                f"{' '.join(map(str, min(missing)))}"
            )
        return True


@rfm.simple_test
class CollectivesOfJob(Collectives):
    """The same on all cores of a node and of a job's nodes, with 1 MiB a rank at the most."""

    needs = "nodes"
    ranks = parameter(["node", "nodes"], loggable=True)
    tags = {"smoke", "correct"}

    @run_after("init")
    def where_jobs_are_submitted(self):
        self.valid_prog_environs = ["+mpi +job"]

    @run_after("setup")
    def bounded(self):
        """A block for each rank, of 1 MiB for each other, would be the memory of a node."""
        self.executable_opts = ["all", "few", "bounded"]
