"""The virtual package of MPI, with a stand-alone test that every MPI can pass."""

import os

from spack.package import *

try:
    import spack_repo.builtin.packages.mpi.package as builtin

    BuiltinMpi = builtin.Mpi
except Exception as error:
    tty.warn(f"mvapich_stack_mends cannot mend builtin's mpi ({error}): take an update of it")

    class BuiltinMpi(PackageBase):
        """The virtual package, without builtin's test."""

        virtual = True


class Mpi(BuiltinMpi):
    """Builtin's test of an MPI starts its ranks with the MPI's own mpirun, and compiles Fortran.

    An MPI whose ranks srun starts has no mpirun, and one built without Fortran no mpif90: there
    the test of builtin fails whatever the MPI does. Here that part is skipped, with the reason;
    the recipe of the MPI has tests of its own.
    """

    def test_mpi_hello(self):
        """one rank says hello, in C and in Fortran, where mpirun and the compiler are there"""
        sources = os.path.join(os.path.dirname(builtin.__file__), "test")
        mpirun = which(self.prefix.bin.mpirun)
        if mpirun is None:
            raise SkipTest("no mpirun in this MPI: another program starts its ranks")
        for wrapper, source in (("mpicc", "mpi_hello.c"), ("mpif90", "mpi_hello.f")):
            name = source.replace(".", "_")
            with test_part(self, f"test_{name}", purpose=f"build and run {source}"):
                compiler = which(join_path(self.prefix.bin, wrapper))
                if compiler is None:
                    raise SkipTest(f"no {wrapper} in this MPI")
                compiler(os.path.join(sources, source), "-o", name)
                said = mpirun("-np", "1", join_path(os.getcwd(), name), output=str, error=str)
                check_outputs([r"Hello world! From rank \s*0 of \s*1"], said)
