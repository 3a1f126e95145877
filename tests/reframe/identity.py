"""The MPI that runs is the one that was planned: version, device, provider, file."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import LIBMPI, MvapichStackMixin


@rfm.simple_test
class Identity(rfm.RegressionTest, MvapichStackMixin):
    """MPI_Get_library_version, the libraries mapped by each rank, and the provider chosen."""

    sourcepath = "identity.c"
    env_vars = {"MPIR_CVAR_DEBUG_SUMMARY": "1"}
    tags = {"smoke"}

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
        self.mapped_is_what_was_planned(text, planned["soname"])
        self.provider_is_what_was_planned(text, planned.get("provider") or [])
        return True

    def mapped_is_what_was_planned(self, text, soname):
        """Every rank mapped a libmpi below the tree, of the planned soname."""
        for rank in range(self.num_tasks):
            mapped = re.findall(rf"^rank {rank} maps (\S+)$", text, re.M)
            self.prove_libmpi(mapped, f"rank {rank}")
            for path in map(Path, filter(LIBMPI.search, mapped)):
                # The map names the file itself, the soname is a link beside it.
                if (path.parent / soname).resolve() != path.resolve():
                    raise SanityError(f"rank {rank} mapped {path}, whose soname is not {soname}")

    def provider_is_what_was_planned(self, text, planned):
        """The provider that libfabric gave is one of ``planned``; TCP unnoticed is no success."""
        if not planned or self.mpi["device"] != "ch4:ofi":
            return
        said = text + self.file(self.stderr)
        found = re.findall(r"provider(?: name)?\s*[:=]\s*(\S+)", said, re.I)
        if not set(found) & set(planned):
            raise SanityError(
                f"the libfabric provider is {', '.join(found) or 'not named'}; planned was "
                f"{' or '.join(planned)}. Look at FI_PROVIDER and at `fi_info -l`"
            )
