"""SPEC MPI2007: licensed benchmarks. Builtin has no recipe of it."""

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

PAGE = "https://www.spec.org/mpi2007/"


class SpecMpi2007(Package):
    """Applications as benchmarks of MPI, of the Standard Performance Evaluation Corporation.

    Licensed: nothing of it is fetched. The recipe takes the tree on the medium that the site
    bought, packed with `tar -C <mounted medium> -czf spec-mpi2007-<version>.tar.gz .`, and runs
    its own installer. A run needs a configuration file of the site's. Unrun.
    """

    homepage = PAGE
    # Spack asks for one, and then for that of the version, below.
    url = "file:///spec-mpi2007-2.0.1.tar.gz"
    manual_download = True

    license("LicenseRef-SPEC-MPI2007", checked_by="mvapich-stack")
    redistribute(source=False, binary=False)

    # licensed: SPEC publishes no hash.
    version("2.0.1")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("mpi")

    def url_for_version(self, version):
        """The file below the folder in which `spack install` is called."""
        return f"file://{os.getcwd()}/spec-mpi2007-{version}.tar.gz"

    @property
    def download_instr(self):
        """What Spack prints where it finds no source."""
        return (
            f"{self.name} is licensed and is never fetched.\n"
            f"    page  {PAGE}\n"
            f"    file  spec-mpi2007-{self.version}.tar.gz\n"
            f"    put it where you call `spack install`, or into a source mirror,\n"
            f"    and add --no-checksum: SPEC publishes no hash of it"
        )

    def install(self, spec, prefix):
        if not os.path.isfile("install.sh"):
            raise InstallError(
                "this is not SPEC's medium: install.sh is missing",
                "found   " + ", ".join(sorted(os.listdir("."))[:8]) + "\n"
                "to do   make the tarball of what is mounted, from inside it",
            )
        mkdirp(prefix)
        # it asks where to install unless it is told; -f: without questions
        which("sh", required=True)("install.sh", "-d", str(prefix), "-f")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("SPEC", self.prefix)
        env.prepend_path("PATH", self.prefix.bin)
