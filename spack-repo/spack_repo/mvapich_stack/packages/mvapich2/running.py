"""How mvapich2 is used: libraries, environments, and the stand-alone tests."""

import os
import re
import socket

from spack_repo.mvapich_stack.slurm import could_start

from spack.package import *

from .words import DEVICES


class Running:
    """Part of the recipe: what dependents and users get, and `spack test run`."""

    @property
    def libs(self):
        """libmpi; with the query `cxx` or `fortran` that binding's library before it."""
        asked = self.spec.last_query.extra_parameters
        names = [
            f"libmpi{end}" for word, end in (("cxx", "cxx"), ("fortran", "fort")) if word in asked
        ]
        return find_libraries([*names, "libmpi"], root=self.prefix, shared=True, recursive=True)

    def setup_mpi_wrapper_variables(self, env):
        """The compilers that this MPI is, for build systems that look at variables."""
        for variable, wrapper in (
            ("MPICC", "mpicc"),
            ("MPICXX", "mpicxx"),
            ("MPIFC", "mpifort"),
            ("MPIF77", "mpif77"),
            ("MPIF90", "mpif90"),
        ):
            env.set(variable, join_path(self.prefix.bin, wrapper))

    def setup_run_environment(self, env):
        """Where it is, its compilers, and what keeps srun from starting worlds of one."""
        for variable in ("MPI_HOME", "MPI_ROOT"):
            env.set(variable, self.prefix)
        self.setup_mpi_wrapper_variables(env)
        if self.spec.satisfies("process_managers=slurm"):
            env.set("SLURM_MPI_TYPE", self.slurms_word)
        if self.spec.satisfies("+cuda"):
            # GPU buffers are off by default, even in a build that has them.
            env.set("MV2_USE_CUDA", "1")

    def setup_dependent_build_environment(self, env, dependent_spec):
        """MPICC and the like, and the wrappers told to call Spack's compilers."""
        self.setup_mpi_wrapper_variables(env)
        super().setup_dependent_build_environment(env, dependent_spec)

    @property
    def slurms_word(self):
        """What srun --mpi= must say: pmi1 is Slurm's libpmi, which needs no plug-in."""
        word = self.spec.variants["pmi_version"].value
        return {"pmi1": "none"}.get(word, word)

    @property
    def launch(self):
        """Words that start two ranks on this host, as this build's ranks are started."""
        spec, here = self.spec, self.prefix.bin
        if spec.satisfies("process_managers=slurm"):
            slurm = spec["slurm"].prefix.bin
            answer = Executable(join_path(slurm, "sinfo"))
            said = answer("-h", "-o", "%P %a %T", output=str, error=str, fail_on_error=False)
            if answer.returncode != 0 or not could_start(said):
                raise SkipTest(f"srun starts this build's ranks, and has no node to: {said}")
            return [join_path(slurm, "srun"), f"--mpi={self.slurms_word}", "-n", "2"]
        if self.managers[:1] == ["mpirun"]:
            return self.by_mpirun_rsh
        if self.managers == ["remshell"]:
            raise SkipTest("remshell starts ranks by ssh, also on this host")
        if self.managers and self.managers[0] in ("hydra", "gforker", "remshell"):
            return [join_path(here, "mpiexec"), "-n", "2"]
        raise SkipTest("something outside this build starts its ranks: process_managers=none")

    @property
    def by_mpirun_rsh(self):
        """Words that start two ranks here through no ssh: it is left out for the host's own name
        alone, not for localhost (seen with 2.3.7)."""
        return [join_path(self.prefix.bin, "mpirun_rsh"), "-np", "2", *2 * [socket.gethostname()]]

    def two_ranks(self, launch, program):
        """Output of `program` started by the words of `launch`."""
        # A wrong launcher or device hangs rather than fails.
        words = ["180", *launch, program, "2"]
        print(" ".join(words[1:]))
        output = which("timeout", required=True)(*words, output=str, error=str)
        print(output)
        return output

    def compiled(self, wrapper, source):
        """Path of the program made of a source that the recipe of mvapich keeps for its tests."""
        folder = join_path(os.path.dirname(os.path.dirname(__file__)), "mvapich", "test")
        program = join_path(os.getcwd(), os.path.splitext(source)[0])
        Executable(join_path(self.prefix.bin, wrapper))(
            "-O1", join_path(folder, source), "-o", program
        )
        return program

    @property
    def expected(self):
        """What rank 0 must print: a world of two, this version, this device."""
        return [
            r"(?m)^world of 2$",
            rf"(?m)^MVAPICH2 Version *:\s+{re.escape(str(self.version))}(?![0-9.-])",
            rf"(?m)^MVAPICH2 Device *:\s+{re.escape(DEVICES[self.fabric])}\s*$",
        ]

    def test_world(self):
        """two ranks see one world of two, and the library is the one asked for"""
        launch = self.launch
        output = self.two_ranks(launch, self.compiled("mpicc", "world.c"))
        check_outputs(self.expected, output)

    def test_world_mpirun_rsh(self):
        """the same, started by mpirun_rsh where it was built beside another launcher"""
        if "mpirun" not in self.managers[1:]:
            raise SkipTest("mpirun_rsh was not built, or test_world is started by it")
        program = self.compiled("mpicc", "world.c")
        check_outputs(self.expected, self.two_ranks(self.by_mpirun_rsh, program))

    def test_world_fortran(self):
        """two ranks of a program that uses mpi_f08"""
        launch = self.launch
        output = self.two_ranks(launch, self.compiled("mpifort", "worldf.f90"))
        check_outputs([r"(?m)^fortran world of 2$"], output)

    def test_what_it_says(self):
        """mpichversion says the version and the device without being launched"""
        said = Executable(join_path(self.prefix.bin, "mpichversion"))(output=str, error=str)
        check_outputs(self.expected[1:], said)
