"""MPI_COMM_WORLD has the size that was asked for: N silent singletons are the commonest lie."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class WorldSize(rfm.RegressionTest, MvapichStackMixin):
    """1, 2 and 4 ranks each see a world of 1, 2 and 4 under the plan's launcher."""

    ranks = parameter([1, 2, 4], loggable=True)
    sourcepath = "world.c"
    tags = {"smoke", "correct"}

    @run_after("setup")
    def on_these_ranks(self):
        self.ask_for(self.ranks)

    @sanity_function
    def world_is_what_was_asked_for(self):
        rows = re.findall(r"^rank (\d+) of (\d+) sum (\d+)", self.output(), re.M)
        worlds = sorted({int(size) for _, size, _ in rows})
        if self.num_tasks > 1 and len(rows) > 1 and worlds == [1]:
            raise SanityError(
                f"PMI mismatch: {len(rows)} processes started as one job of {self.num_tasks} each "
                f"saw a world of 1. The launcher and libmpi do not speak the same PMI (planned: "
                f"{self.mpi['launcher']} with {self.mpi['pmi']}). Look at `type mpiexec` after "
                f"`module load {self.mpi['module']}`, and under Slurm at `srun --mpi=list` and "
                f"MpiDefault in slurm.conf"
            )
        found = sorted((int(rank), int(size), int(total)) for rank, size, total in rows)
        total = self.num_tasks * (self.num_tasks - 1) // 2
        if found != [(rank, self.num_tasks, total) for rank in range(self.num_tasks)]:
            raise SanityError(
                f"{self.num_tasks} ranks were asked for; processes said (rank, size, sum of ranks) "
                f"{found or 'nothing'}"
            )
        return True


@rfm.simple_test
class WorldSizeOfJob(WorldSize):
    """A rank on each core of a node, then of a job's nodes, sees a world of all of them."""

    needs = "nodes"
    ranks = parameter(["node", "nodes"], loggable=True)
    tags = {"smoke", "correct"}
    time_limit = "180s"

    @run_after("init")
    def where_jobs_are_submitted(self):
        self.valid_prog_environs = ["+mpi +job"]
