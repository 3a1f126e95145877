"""The stand-alone tests of MVAPICH (`spack test run`), started by what starts its ranks."""

import os
import re

from spack_repo.mvapich_stack.slurm import could_start

from spack.package import *


class StandAloneTests(PackageBase):
    """Two ranks in one world, in C and in Fortran, by hydra's mpiexec or by srun."""

    def two_ranks(self, program):
        """Output of `program` started as two ranks by what this build's ranks are started by."""
        mpiexec = join_path(self.prefix.bin, "mpiexec")
        if self.spec.satisfies("process_managers:=remshell"):
            raise SkipTest("remshell starts ranks by ssh, also on this host")
        if os.path.exists(mpiexec):
            launch = [mpiexec, "-n", "2"]
        elif self.spec.satisfies("process_managers=slurm"):
            slurm = self.spec["slurm"].prefix.bin
            answer = Executable(join_path(slurm, "sinfo"))
            said = answer("-h", "-o", "%P %a %T", output=str, error=str, fail_on_error=False)
            if answer.returncode != 0 or not could_start(said):
                raise SkipTest(f"srun starts this build's ranks, and has no node to: {said}")
            launch = [join_path(slurm, "srun"), f"--mpi={self.slurms_word}", "-n", "2"]
        else:
            raise SkipTest("process_managers=none: something outside this build starts its ranks")
        # A wrong provider or PMI hangs rather than fails.
        started = Executable(launch[0])
        output = started(*launch[1:], program, "2", output=str, error=str, timeout=180)
        print(" ".join(launch), program)
        print(output)
        return output

    def compiled(self, wrapper, source):
        """Path of the program made of a source of the recipe's folder test/."""
        # Beside this file, so that a recipe which inherits this one finds it as well.
        path = join_path(os.path.dirname(__file__), "test", source)
        program = join_path(os.getcwd(), os.path.splitext(source)[0])
        Executable(join_path(self.prefix.bin, wrapper))("-O1", path, "-o", program)
        return program

    def test_world(self):
        """two ranks see one world of two, and the library is the one asked for"""
        output = self.two_ranks(self.compiled("mpicc", "world.c"))
        check_outputs(
            [
                r"(?m)^world of 2$",
                rf"(?m)^MVAPICH Version *:\s+{re.escape(str(self.version))}(?![0-9.])",
                rf"(?m)^MVAPICH Device *:\s+ch4:{'[ ,]'.join(self.netmods)}\s*$",
            ],
            output,
        )

    def test_world_fortran(self):
        """two ranks of a program that uses mpi_f08"""
        if self.spec.satisfies("~fortran"):
            raise SkipTest("built without Fortran")
        check_outputs(
            [r"(?m)^fortran world of 2$"], self.two_ranks(self.compiled("mpifort", "worldf.f90"))
        )

    def test_what_it_says(self):
        """mpichversion says the version and the device without being launched"""
        said = Executable(join_path(self.prefix.bin, "mpichversion"))(output=str, error=str)
        check_outputs([rf"MVAPICH Version *:\s+{re.escape(str(self.version))}"], said)
