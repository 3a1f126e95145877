"""The NAS parallel benchmarks in OpenSHMEM. Builtin has those in MPI and OpenMP (npb)."""

import os

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *

LANGUAGES = {"bt": "Fortran", "ep": "Fortran", "mg": "Fortran", "sp": "Fortran", "is": "C"}
CLASSES = ("S", "W", "A", "B", "C", "D")
SQUARE = ("bt", "sp")  # these run on 1, 4, 9, 16 … ranks

MAKE_DEF = """\
# Written by the Spack recipe npb-openshmem.
SHMEMF77 = {oshfort}
FLINK = $(SHMEMF77)
FFLAGS = -O3 -I./ {legacy}
FLINKFLAGS = -O3
SHMEMCC = {oshcc}
CLINK = $(SHMEMCC)
CFLAGS = -O3
CLINKFLAGS = -O3
CC = {cc}
BINDIR = ../bin
RAND = randi8
"""


class NpbOpenshmem(MakefilePackage):
    """NPB3.2-SHMEM: BT, EP, MG, SP (Fortran) and IS (C) of the NAS parallel benchmarks.

    Sizes are compiled in: one program for each benchmark, class and number of ranks.
    """

    homepage = "https://github.com/openshmem-org/openshmem-npbs"
    git = "https://github.com/openshmem-org/openshmem-npbs.git"

    license("BSD-3-Clause", checked_by="mvapich-stack")

    # Upstream publishes no tarball of its own. The commit is the proof: git hashes its content.
    version("2014.06.24", commit="0028e8d07e1e860cc924cca2df02bc528e4e461d")  # IS mended
    version("1.0a", commit="7d9e5cd76301909d246aae84f61a36545f9fea48")

    variant(
        "names",
        default="bt,ep,is,mg,sp",
        values=("bt", "ep", "is", "mg", "sp"),
        multi=True,
        description="Benchmarks to build",
    )
    variant("classes", default="S,A", values=CLASSES, multi=True, description="Problem sizes")
    variant("nprocs", default="1,4,16", multi=True, description="Numbers of ranks")
    variant(
        "shmem",
        default="sos",
        values=("sos", "mvapich2-x"),
        multi=False,
        description="OpenSHMEM: Sandia's, or the one in MVAPICH2-X",
    )

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("gmake", type="build")
    depends_on("sos +fortran", when="shmem=sos")
    depends_on("mvapich2-x", when="shmem=mvapich2-x")

    parallel = False  # the benchmarks share their object files

    def runs(self):
        """(benchmark, class, ranks) of each program; BT and SP run on square numbers only."""
        values = {one: sorted(self.spec.variants[one].value) for one in ("names", "classes")}
        ranks = sorted(int(one) for one in self.spec.variants["nprocs"].value)
        return [
            (name, size, count)
            for name in values["names"]
            for size in values["classes"]
            for count in ranks
            if not (name in SQUARE and int(count**0.5) ** 2 != count)
            and (name, size) != ("is", "D")  # IS has no class D
        ]

    def edit(self, spec, prefix):
        home = spec["sos" if spec.satisfies("shmem=sos") else "mvapich2-x"].prefix
        modern = spec.satisfies("%fortran=gcc@10:")
        text = MAKE_DEF.format(
            oshfort=home.bin.oshfort,
            oshcc=home.bin.oshcc,
            cc=spack_cc,
            legacy="-fallow-argument-mismatch" if modern else "",
        )
        for language in ("C", "Fortran"):
            with open(join_path(language, "config", "make.def"), "w") as out:
                out.write(text)

    def build(self, spec, prefix):
        for name, size, ranks in self.runs():
            with working_dir(LANGUAGES[name]):
                make(name, f"CLASS={size}", f"NPROCS={ranks}")

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        for name, size, ranks in self.runs():
            program = f"{name}.{size}.{ranks}"
            install(join_path(LANGUAGES[name], "bin", program), prefix.bin)

    def test_verification(self):
        """run the smallest program of each benchmark, which verifies its own result"""
        start = which("oshrun", required=True)
        for name in sorted(self.spec.variants["names"].value):
            size, ranks = next((s, r) for n, s, r in self.runs() if n == name)
            program = os.path.join(self.prefix.bin, f"{name}.{size}.{ranks}")
            with test_part(self, f"test_verification_{name}", purpose=f"{name}.{size}.{ranks}"):
                said = start("-n", str(ranks), program, output=str.split, error=str.split)
                assert "SUCCESSFUL" in said, said
