"""MVAPICH2-J: Java bindings of MVAPICH2. Builtin has no recipe of it."""

import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

PAGE = "http://mvapich.cse.ohio-state.edu/userguide/mv2j/"
FILE = "mvapich2-j.tar.gz"


class Mvapich2J(Package):
    """Java bindings of MVAPICH2: the library mvapich2-j.jar and its native part.

    Of the tarball no hash is published, so it is downloaded by hand. Unrun: the recipe follows
    the makers' user guide and was written without the tarball; it installs a tree that is built by
    that guide, packed with `tar -C <MV2J_HOME> -czf mvapich2-j.tar.gz .`
    """

    homepage = PAGE
    # Spack asks for one, and then for that of the version, below.
    url = f"file:///{FILE}"
    manual_download = True

    license("LicenseRef-MVAPICH2-J", checked_by="mvapich-stack")  # comes with the tarball

    # no hash: none is published, and one is never made up.
    version("2.3.7")

    depends_on("mvapich2")
    depends_on("java", type=("build", "run"))

    def url_for_version(self, version):
        """The file below the folder in which `spack install` is called."""
        return f"file://{os.getcwd()}/{FILE}"

    @property
    def download_instr(self):
        """What Spack prints where it finds no source."""
        return (
            f"{self.name} is downloaded by hand.\n"
            f"    page  {PAGE}\n"
            f"    file  {FILE}, of the tree that its guide builds\n"
            f"    put it where you call `spack install`, or into a source mirror,\n"
            f"    and add --no-checksum: no hash of it is published"
        )

    def install(self, spec, prefix):
        if not os.path.isfile(join_path("lib", "mvapich2-j.jar")):
            raise InstallError(
                "this is not a tree of MVAPICH2-J: lib/mvapich2-j.jar is missing",
                "found   " + ", ".join(sorted(os.listdir("."))[:8]) + "\n"
                "to do   build it by its guide, and make the tarball of the folder $MV2J_HOME, "
                "from inside it",
            )
        install_tree(".", prefix)

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("MV2J_HOME", self.prefix)
        env.prepend_path("CLASSPATH", join_path(self.prefix.lib, "mvapich2-j.jar"))
