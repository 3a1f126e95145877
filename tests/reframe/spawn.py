"""A program starts others, as those that grow while they run do."""

import re
import shlex

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from dynamic import lacking
from mvapich_stack_mixin import MvapichStackMixin

# What srun does was seen: Slurm 22.05, pmi2, MVAPICH 4.0 over libfabric.
SRUN = (
    "srun waits for ever in MPI_Comm_spawn, as the children find no free processors; in an "
    "allocation `srun --mpi=pmi2 --overlap` starts them"
)


@rfm.simple_test
class Spawn(rfm.RegressionTest, MvapichStackMixin):
    """Two ranks start two children by MPI_Comm_spawn; values go both ways; they disconnect."""

    sourcepath = "spawn.c"
    tags = {"smoke", "correct"}
    time_limit = "120s"

    @run_after("setup")
    def leave_out_what_cannot(self):
        """Only launchers that come with an MPI start the children of its ranks as they are."""
        launcher = shlex.split(self.mpi["launch"])[0]
        why = lacking(self.mpi)
        if launcher not in ("mpiexec", "mpirun"):
            why = why or {"srun": SRUN}.get(launcher, f"MPI_Comm_spawn was not tried by {launcher}")
        self.skip_if(why, why)

    @sanity_function
    def all_values_came(self):
        text = self.output()
        if found := re.search(r"^(?:no children|wrong|hung)\b.*", text, re.M):
            ask = (
                "Does the launcher know of free places (mpiexec -usize, the job's tasks)? May "
                "ranks connect to TCP ports of other nodes?"
            )
            raise SanityError(
                f"{found[0]}. Programs that start others by MPI_Comm_spawn do not run. "
                f"{'' if found[0].startswith('wrong') else ask}".rstrip()
            )
        if not re.search(rf"^right values of 2 children and {self.num_tasks} parents$", text, re.M):
            raise SanityError(
                "parents and children did not come to their end: a rank died, or the ranks are "
                "worlds of their own; see the check WorldSize"
            )
        return True
