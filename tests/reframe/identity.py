"""The MPI that runs is the one that was planned: version, device, provider, file."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

from fabric import TUNING, fault, little_locked, other_transport, over_tcp, unplanned
from mvapich_stack_mixin import LIBMPI, MvapichStackMixin


@rfm.simple_test
class Identity(rfm.RegressionTest, MvapichStackMixin):
    """MPI_Get_library_version, the libraries of each rank, the provider chosen, bytes over TCP."""

    sourcepath = "identity.c"
    env_vars = {
        "MPIR_CVAR_DEBUG_SUMMARY": "1",
        "UCX_LOG_LEVEL": "info",
        "OMPI_MCA_opal_common_ofi_verbose": "1",
    }
    tags = {"quick", "smoke", "correct"}

    @run_after("setup")
    def use_the_fabric(self):
        """Two ranks of one node talk through memory: where there are nodes, take two."""
        if not self.current_partition.scheduler.is_local:
            self.num_tasks_per_node = 1

    @run_before("run")
    def tell_variables(self):
        """The caller's own are not here: `mvstack test` leaves them out."""
        self.prerun_cmds = [
            *self.prerun_cmds,
            f"env | sed -nE 's/^({TUNING})_/set &/p'",
            'echo "untuned ${MVAPICH_STACK_UNTUNED:-0}"',
        ]

    @run_before("sanity")
    def tell_little_memory(self):
        """Before ReFrame tells the exit code of ranks that MPI_Init has ended for it."""
        if wrong := little_locked(self.file(self.stdout), self.mpi["fabric"]):
            raise SanityError(wrong)

    @sanity_function
    def is_what_was_planned(self):
        text, planned = self.output(), self.mpi["believe"]
        version = re.search(r"library version begins\n(.*?)\nlibrary version ends", text, re.S)
        version = version[1] if version else ""
        if not re.search(planned["library_version"], version):
            raise SanityError(
                f"MPI_Get_library_version said {version.splitlines()[:1] or 'nothing'}; planned "
                f"was {planned['library_version']}"
            )
        device = re.search(r"Device:\s*(\S+)", version)
        if planned.get("device") and not (device and device[1] == planned["device"]):
            raise SanityError(
                f"the device is {device[1] if device else 'not named'}; planned was "
                f"{planned['device']}"
            )
        self.module_sets_what_was_planned(text)
        self.mapped_is_what_was_planned(text, planned.get("soname"))
        self.fabric_is_what_was_planned(text + self.file(self.stderr), planned)
        return True

    def module_sets_what_was_planned(self, text):
        """One more variable puts all messages on another way. A site's MPI sets its own."""
        tuned = {} if "untuned 1" in text.splitlines() else self.mpi.get("tuning", {})
        rows = {**self.mpi.get("environment", {}), **tuned}
        wanted = {
            name: f"{self.tree}/rendered/{row['value']}" if "table" in row else row["value"]
            for name, row in rows.items()
        }
        wrong = unplanned(text, wanted, self.env_vars)
        if wrong and not self.mpi.get("provided"):
            raise SanityError(
                f"{wrong}. Look at `module show {self.mpi['module']}`, and at what a shell or the "
                f"scheduler's prolog sets; what a site wants set goes into `environment` of a row "
                f"of its policy (docs/adding/fabric.md)"
            )

    def mapped_is_what_was_planned(self, text, soname):
        """Every rank mapped a libmpi below the tree, of the planned soname, and the planned UCX."""
        ranks = sorted(set(map(int, re.findall(r"^rank (\d+) maps", text, re.M))))
        if ranks != list(range(self.num_tasks)):
            raise SanityError(
                f"{self.num_tasks} ranks were started, and those that spoke say that they are "
                f"{ranks}; see the check WorldSize"
            )
        for rank in ranks:
            mapped = re.findall(rf"^rank {rank} maps (\S+)$", text, re.M)
            self.prove_libmpi(mapped, f"rank {rank}")
            if wrong := other_transport(mapped, self.mpi, self.tree):
                raise SanityError(f"rank {rank} loaded {wrong}")
            for path in map(Path, filter(LIBMPI.search, mapped)):
                # The map names the file itself, the soname is a link beside it.
                if soname and (path.parent / soname).resolve() != path.resolve():
                    raise SanityError(f"rank {rank} mapped {path}, whose soname is not {soname}")

    def fabric_is_what_was_planned(self, said, planned):
        """What carries the messages is among what was planned; TCP unnoticed is no success."""
        nodes = self.num_tasks // (self.num_tasks_per_node or self.num_tasks)
        if wrong := fault(said, self.mpi["device"], planned) or over_tcp(said, planned, nodes):
            raise SanityError(wrong)
