"""The NAS parallel benchmarks in UPC. Builtin has those in MPI and OpenMP (npb)."""

import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *

NAMES = ("cg", "ep", "ft", "is", "mg")
FILE = "npb-upc-2.4-11.02.tar.gz"
PAGE = "https://threads.hpcl.gwu.edu/sites/npb-upc"


class NpbUpc(MakefilePackage):
    """UPC versions of CG, EP, FT, IS and MG of the NAS parallel benchmarks 2.4.

    By The George Washington University. Unrun: the recipe was written from the suite's README,
    without the tarball and without a UPC compiler at hand. Each benchmark is a folder with a
    makefile of its own.
    """

    homepage = PAGE
    # Spack asks for one, and then for that of the version, below.
    url = f"file:///{FILE}"
    manual_download = True

    # no hash: none is published, and one is never made up. So it is downloaded by hand.
    version("2.4-11.02")

    license("LicenseRef-NPB-UPC", checked_by="mvapich-stack")  # the notice in the tarball

    variant("names", default=",".join(NAMES), values=NAMES, multi=True, description="Benchmarks")
    variant(
        "classes",
        default="S,A",
        values=("S", "W", "A", "B", "C", "D"),
        multi=True,
        description="Problem sizes",
    )
    variant("nprocs", default="1,4,16", multi=True, description="Numbers of threads")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    # MVAPICH2-X brings a UPC compiler (upcc) and its runtime; Spack has no other.
    depends_on("mvapich2-x")

    parallel = False

    def url_for_version(self, version):
        """The file below the folder in which `spack install` is called."""
        return f"file://{os.getcwd()}/{FILE}"

    @property
    def download_instr(self):
        """What Spack prints where it finds no source."""
        return (
            f"{self.name} is downloaded by hand.\n"
            f"    page  {PAGE}\n"
            f"    file  the tarball of 2.4-11.02, saved as {FILE}\n"
            f"    put it where you call `spack install`, or into a source mirror,\n"
            f"    and add --no-checksum: no hash of it is published"
        )

    def runs(self):
        """(benchmark, class, threads) of each program."""
        values = {one: sorted(self.spec.variants[one].value) for one in ("names", "classes")}
        threads = sorted(int(one) for one in self.spec.variants["nprocs"].value)
        return [(n, c, t) for n in values["names"] for c in values["classes"] for t in threads]

    def edit(self, spec, prefix):
        """Nothing: the compiler is given to make."""

    def build(self, spec, prefix):
        upcc = spec["mvapich2-x"].prefix.bin.upcc
        mkdirp("programs")
        for name, size, threads in self.runs():
            folder = name.upper()
            before = set(os.listdir(folder))
            make("-C", folder, f"CLASS={size}", f"NP={threads}", f"CC={upcc}", f"UPCC={upcc}")
            made = [
                one
                for one in sorted(set(os.listdir(folder)) - before)
                if os.path.isfile(join_path(folder, one))
                and os.access(join_path(folder, one), os.X_OK)
            ]
            if len(made) != 1:
                raise InstallError(
                    f"make left {len(made)} programs in {folder}, one was expected",
                    f"found   {', '.join(made) or 'none'}\n"
                    f"to do   compare {folder}/Makefile with what this recipe gives to make",
                )
            os.rename(
                join_path(folder, made[0]), join_path("programs", f"{name}.{size}.{threads}")
            )
            make("-C", folder, "clean")

    def install(self, spec, prefix):
        install_tree("programs", prefix.bin)
