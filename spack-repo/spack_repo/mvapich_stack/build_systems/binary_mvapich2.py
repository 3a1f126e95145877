"""Products of the MVAPICH2 family that were only given out as binaries: externals of a site.

Their hashes are of the file that stands for the source in the makers' binary mirror. That mirror
holds packages of Spack 0.16 and 0.17, which Spack 1 cannot read; so there is nothing to install.
"""

import os
import re

from spack_repo.builtin.build_systems.generic import Package
from spack_repo.mvapich_stack.build_systems.mpich_based import MpichBased

from spack.package import *


class BinaryMvapich2(MpichBased, Package):
    """What MVAPICH2-GDR and MVAPICH2-X share: found where a site has them, never built."""

    manual_download = True
    executables = ["^mpiname$", "^mpichversion$"]

    #: what the product calls itself, where its binaries are, and what to use in its place
    calls_itself = ""
    mirror = ""
    instead = ""

    variant(
        "process_managers",
        default="mpirun",
        values=("mpirun", "hydra", "slurm", "jsm", "none"),
        multi=False,
        description="What starts the ranks; mpirun: mpirun_rsh, jsm: jsrun",
    )
    variant(
        "pmi_version",
        default="pmi2",
        values=("pmi1", "pmi2", "pmix"),
        multi=False,
        when="process_managers=slurm",
        description="How srun and the ranks talk",
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    # All are built for OFED: their library loads libibverbs when a program starts.
    depends_on("rdma-core")
    depends_on("slurm", when="process_managers=slurm")
    depends_on("pmix", when="pmi_version=pmix")
    depends_on("libpciaccess")
    depends_on("libxml2")

    provides("mpi@:3.1")

    @staticmethod
    def said_by(exe):
        """What `mpiname -a` or `mpichversion` prints."""
        arguments = ["-a"] if os.path.basename(exe) == "mpiname" else []
        return Executable(exe)(*arguments, output=str, error=str)

    @classmethod
    def determine_version(cls, exe):
        """The version, from what the program prints; None for other products."""
        name = re.escape(cls.calls_itself)
        said = re.search(rf"^{name}(?:\s+Version\s*:)?\s+(\S+)", cls.said_by(exe), re.M)
        return said.group(1) if said else None

    @classmethod
    def determine_variants(cls, exes, version):
        """The variants of each installation, from the configure line that it prints."""
        return [" ".join(cls.variants_said(cls.said_by(exe))) for exe in exes]

    @classmethod
    def variants_said(cls, text):
        """The launcher, from a configure line; recipes add to it."""
        manager = re.search(r"--with-pm=(slurm|jsm|hydra)\b", text)
        if not manager:
            return []
        said = [f"process_managers={manager.group(1)}"]
        pmi = re.search(r"--with-pmi=(pmi1|pmi2|pmix)\b", text)
        if pmi and manager.group(1) == "slurm":
            said.append(f"pmi_version={pmi.group(1)}")
        return said

    @property
    def download_instr(self):
        """Said where Spack would fetch."""
        return "\n".join(
            [
                f"{self.name} is given out as binaries only; Spack neither fetches nor builds it.",
                "page      https://mvapich.cse.ohio-state.edu/downloads/",
                f"mirror    {self.mirror}",
                "          (packages of Spack 0.16 and 0.17, which Spack 1 cannot read)",
                f"then      `spack external find {self.name}`, or in packages.yaml",
                f"          {self.name}: {{externals: [{{spec: {self.name}@{self.version}, "
                "prefix: /opt/…}], buildable: false}",
                f"or use    {self.instead}",
            ]
        )

    def do_fetch(self, mirror_only=False):
        """Refuse. Spack would fetch by the url even what is downloaded by hand."""
        if not self.spec.external:
            raise InstallError(f"{self.name} has no source to fetch", self.download_instr)

    def install(self, spec, prefix):
        """Refuse: there is no source."""
        raise InstallError(f"{self.name} cannot be built from source", self.download_instr)
