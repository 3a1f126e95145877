"""An error or MPI_Abort ends all ranks: who is left keeps a processor until somebody notices."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class ErrorEndsAllRanks(rfm.RegressionTest, MvapichStackMixin):
    """After an MPI error or MPI_Abort in one of 4 ranks none runs on, and the status is not 0."""

    how = parameter(["error", "abort", "part"], loggable=True)
    sourcepath = "abort.c"
    tags = {"smoke", "correct"}

    @run_after("init")
    def ask_for_ranks(self):
        self.num_tasks = 4
        self.executable_opts = [self.how]

    @run_before("run")
    def look_for_what_is_left(self):
        """Before the mixin's last line; the status is that of the launch line, and not 0."""
        self.prerun_cmds = [*self.prerun_cmds, "trap - ERR"]
        self.postrun_cmds = [
            'echo "status $?"',
            "if [ -e went-on ]; then echo went on; fi",
            f"sh still_running.sh {self.job.stdout} {self.executable}",
            # a launcher may return before the ranks of other hosts have computed for their 8 s
            *(["sleep 5"] if self.how == "part" else []),
            "if [ -e computed-on ]; then echo computed on; fi",
            *self.postrun_cmds,
        ]

    def mend(self):
        """What to do where the others run on after an error in a part."""
        said = "This MPI ends only the ranks of the communicator."
        if (self.mpi["product"], self.mpi["version"]) == ("mvapich", "4.0"):
            said = "Was this MPI built from our recipe? (patch error-in-a-part)"
        if self.mpi["launch"].startswith("srun"):
            said += " Use srun --kill-on-bad-exit."
        return said

    @sanity_function
    def nobody_is_left(self):
        text = self.output()
        if len(re.findall(r"^rank \d+ process", text, re.M)) < self.num_tasks:
            raise SanityError("the program ended before its error: look at the check WorldSize")
        what = {"part": "an error in a part of the ranks"}.get(self.how, f"an {self.how}")
        left = re.findall(r"^(rank \d+) still runs: (.*)$", text, re.M)
        if left:
            raise SanityError(
                f"{len(left)} of {self.num_tasks} ranks ran on after the program had ended by "
                f"{what}, {left[0][0]} as {left[0][1]} (ended now). On a node without a "
                f"scheduler they take a processor each until somebody kills them. The launcher "
                f"left them: was it built from our recipe? (patch abort-ends-all-ranks of "
                f"MVAPICH 4.0)"
            )
        if re.search(r"^went on$", text, re.M):
            raise SanityError(f"the rank that ended the program by {what} went on after it")
        if re.search(r"^computed on$", text, re.M):
            raise SanityError(
                f"one rank ended by {what}, and the others ran on: a job may wait like this until "
                "its time limit. MPI 4.0 requires that all end. " + self.mend()
            )
        status = re.search(r"^status (\d+)$", text, re.M)
        if not status or status[1] == "0":
            raise SanityError("the launcher ended with status 0, as if all were well")
        return True
