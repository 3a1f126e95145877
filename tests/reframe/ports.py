"""Two programs meet through a port, as those of a coupled simulation do."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from dynamic import lacking
from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Ports(rfm.RegressionTest, MvapichStackMixin):
    """Two halves of four ranks meet twice by MPI_Open_port, MPI_Comm_accept and _connect."""

    sourcepath = "ports.c"
    tags = {"smoke", "correct"}
    time_limit = "120s"

    @run_after("init")
    def ask_for_ranks(self):
        """Each half is of two, so that not all are leaders."""
        self.num_tasks = 4

    @run_after("setup")
    def leave_out_what_cannot(self):
        self.skip_if(lacking(self.mpi), lacking(self.mpi))

    @sanity_function
    def all_met(self):
        text = self.output()
        if found := re.search(r"^(?:no port: |wrong )(.*(?:\n\w+\(\d+\).*)*)", text, re.M):
            asked = "Was this MPI built from our recipe? (patch port-by-socket of MVAPICH 4.0)"
            raise SanityError(
                f"{found[0]}. Programs that are coupled by MPI_Comm_accept and _connect do not "
                f"run. {asked if found[0].startswith('no port') else ''}".rstrip()
            )
        if not re.search(r"^met 2 times, 4 ranks$", text, re.M):
            raise SanityError(
                "the two halves did not meet. Over UCX one asks the other's host by TCP: may "
                "ranks connect to TCP ports of other nodes? Look for a firewall between nodes"
            )
        return True
