"""The test suite of MPICH, for any MPI. Builtin builds it as a part of MPICH only."""

import os
import re
import shutil

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

#: Folders of the suite, those that every MPI must pass first.
FOLDERS = (
    "attr",
    "coll",
    "comm",
    "datatype",
    "errhan",
    "group",
    "info",
    "init",
    "io",
    "mpi_t",
    "part",
    "pt2pt",
    "rma",
    "session",
    "spawn",
    "threads",
    "topo",
)


class MpichTestsuite(Package):
    """MPICH's own tests (test/mpi of its tarball), configured for the MPI of the spec.

    `spack test run mpich-testsuite` compiles and runs those of the folders that the variant
    `folders` names. MPIEXEC and MPITEST_MPIEXECARG say what starts ranks (an MPI without mpiexec:
    `MPIEXEC="srun --mpi=pmi2"`), MPITEST_TIMEOUT the seconds that one program may take.
    """

    homepage = "https://www.mpich.org/"
    url = "https://www.mpich.org/static/downloads/4.3.2/mpich-4.3.2.tar.gz"

    license("mpich2", checked_by="mvapich-stack")

    # Hashes: builtin's recipe of mpich. 4.3.0, 3.4.3 and 3.2.1 are what MVAPICH 4, MVAPICH 3 and
    # MVAPICH2 2.3.7 are made from: what these fail there, they need not pass.
    version("4.3.2", sha256="47d774587a7156a53752218c811c852e70ac44db9c502dc3f399b4cb817e3818")
    version("4.3.0", sha256="5e04132984ad83cab9cc53f76072d2b5ef5a6d24b0a9ff9047a8ff96121bcc63")
    version("3.4.3", sha256="8154d89f3051903181018166678018155f4c2b6f04a9bb6fe9515656452c4fd7")
    version("3.2.1", sha256="5db53bf2edfaa2238eb6a0a5bc3d2c2ccbfbb1badd79b664a1a919d2ce2330f1")

    variant(
        "folders",
        default=",".join(FOLDERS),
        values=FOLDERS,
        multi=True,
        description="What the stand-alone test runs",
    )
    variant("fortran", default=True, description="Configure the tests in Fortran as well")
    variant("cxx", default=False, description="Configure the tests of the C++ bindings as well")
    variant(
        "strict", default=False, description="Only what the MPI standard says, nothing of MPICH's"
    )
    variant("xfail", default=False, description="Run what upstream marks as expected to fail, too")

    depends_on("c", type=("build", "test"))
    depends_on("cxx", type=("build", "test"))
    depends_on("fortran", type=("build", "test"), when="+fortran")
    depends_on("gmake", type=("build", "test", "run"))
    depends_on("perl", type=("build", "test", "run"))
    depends_on("mpi", type=("build", "link", "run", "test"))

    test_requires_compiler = True

    @property
    def home(self):
        """The configured suite below the prefix; runs are made in copies of it."""
        return join_path(self.prefix.libexec, "mpich-testsuite")

    def configure_args(self):
        """What test/mpi/configure is called with."""
        spec = self.spec
        args = [f"--with-mpi={spec['mpi'].prefix}"]
        args.append(f"--{'enable' if spec.satisfies('+cxx') else 'disable'}-cxx")
        if spec.satisfies("~fortran"):
            args.append("--disable-fortran")
        if spec.satisfies("+strict"):
            args.append("--enable-strictmpi")
        if spec.satisfies("+xfail"):
            args.append("--enable-xfail")
        return args

    def install(self, spec, prefix):
        # With its times: files that autotools made must not look older than what they came from.
        shutil.copytree(join_path("test", "mpi"), self.home, symlinks=True)
        with working_dir(self.home):
            Executable("./configure")(*self.configure_args())
            for library in ("util", "dtpools"):  # 3.2.1 has no dtpools
                if os.path.isdir(library):
                    make("-C", library, "all")

    def test_folders(self):
        """compile and run the tests of each folder"""
        copy = join_path(os.getcwd(), "mpich-testsuite")
        if not os.path.isdir(copy):
            shutil.copytree(self.home, copy, symlinks=True)
        runtests = Executable(join_path(copy, "runtests"))
        for folder in sorted(self.spec.variants["folders"].value):
            place = join_path(copy, folder)
            with test_part(self, f"test_folders_{folder}", purpose=f"the folder {folder}"):
                if not os.path.isfile(join_path(place, "testlist")):
                    raise SkipTest(f"this version of the suite has no {folder}, or left it out")
                with working_dir(place):
                    said = runtests(
                        "-srcdir=.",
                        "-tests=testlist",
                        f"-mpiexec={self.launcher}",
                        "-junitfile=summary.junit.xml",
                        output=str.split,
                        error=str.split,
                    )
                print(said)
                assert re.search(r"All [1-9]\d* tests passed", said), said[-2000:]

    @property
    def launcher(self):
        """What starts ranks: MPIEXEC, else the MPI's own mpiexec, else Slurm's srun."""
        own = join_path(self.spec["mpi"].prefix.bin, "mpiexec")
        return os.environ.get("MPIEXEC") or (own if os.path.isfile(own) else "srun")
