"""Q-Chem: licensed quantum chemistry. Builtin has no recipe of it."""

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

PAGE = "https://www.q-chem.com/install/"


class QChem(Package):
    """The quantum chemistry program Q-Chem, of Q-Chem, Inc. Licensed: nothing of it is fetched.

    The recipe takes the tarball that your licence lets you download, or makes one of an
    installation by Q-Chem's own installer: `tar -C <QC> -czf qchem-<version>.tar.gz .`
    """

    homepage = "https://www.q-chem.com/"
    # Spack asks for one, and then for that of the version, below.
    url = "file:///qchem-6.0.tar.gz"
    manual_download = True

    license("LicenseRef-Q-Chem", checked_by="mvapich-stack")
    redistribute(source=False, binary=False)

    # licensed: Q-Chem publishes no hash, and each licence has a download of its own.
    version("6.0")
    version("5.3")

    variant("mpi", default=True, description="Start parallel jobs through this MPI")

    depends_on("mpi", type="run", when="+mpi")

    def url_for_version(self, version):
        """The file below the folder in which `spack install` is called."""
        return f"file://{os.getcwd()}/qchem-{version}.tar.gz"

    @property
    def download_instr(self):
        """What Spack prints where it finds no source."""
        return (
            f"{self.name} is licensed and is never fetched.\n"
            f"    page  {PAGE}\n"
            f"    file  qchem-{self.version}.tar.gz\n"
            f"    put it where you call `spack install`, or into a source mirror,\n"
            f"    and add --no-checksum: Q-Chem publishes no hash of it"
        )

    def install(self, spec, prefix):
        if not os.path.isfile(join_path("bin", "qchem")):
            raise InstallError(
                "this is not a tree of Q-Chem: bin/qchem is missing",
                "found   " + ", ".join(sorted(os.listdir("."))[:8]) + "\n"
                "to do   make the tarball of the folder that $QC names, from inside it",
            )
        install_tree(".", prefix)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        # Q-Chem's manual, 2.1.3: programs are below QC, basis sets and the licence below QCAUX.
        env.set("QC", self.prefix)
        env.set("QCAUX", self.prefix.qcaux)
        env.prepend_path("PATH", self.prefix.bin)
        if self.spec.satisfies("+mpi"):
            # What SDSC's recipe sets for MVAPICH2: it is started as MPICH is.
            family = {"openmpi": "openmpi"}.get(self.spec["mpi"].name, "mpich")
            env.set("QCMPI", family)
