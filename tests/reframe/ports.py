"""Two programs meet through a port, as those of a coupled simulation do."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

# Over UCX: MVAPICH, where the address does not fit into a port's name unless our recipe patched it
# (docs/upstream.md), and MPICH 4.0, which has no dynamic processes.
WITHOUT = {("mvapich", "3."), ("mvapich", "4.1"), ("mvapich-plus", ""), ("mpich", "4.0")}


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
        """MVAPICH2 does this only where the program's environment asks for it."""
        product, version = self.mpi["product"], self.mpi["version"]
        if self.mpi["device"] == "ch4:ucx":
            cannot = any(product == one and version.startswith(of) for one, of in WITHOUT)
            cannot = cannot or (product == "mvapich" and self.mpi.get("provided"))
            self.skip_if(cannot, f"MPI_Open_port of {product} {version} fails over UCX")
        self.skip_if(product == "mvapich2", "MVAPICH2 needs MV2_SUPPORT_DPM=1 for it")

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
