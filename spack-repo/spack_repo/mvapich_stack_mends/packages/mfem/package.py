"""MFEM, linked with MVAPICH's Fortran library where STRUMPACK needs it."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.mfem.package import Mfem as BuiltinMfem
except Exception as error:
    BuiltinMfem = gone("mfem", error)


class Mfem(Mend, BuiltinMfem):
    """The finite element library MFEM, over MVAPICH.

    A static STRUMPACK leaves its calls of MPI from Fortran to whoever links it. Builtin's recipe
    adds libmpifort for MPICH and MVAPICH2, and not for MVAPICH, whose mpicxx does not.
    """

    def flag_handler(self, name, flags):
        static = self.spec.satisfies("+strumpack ^strumpack~shared+mpi")
        own_fortran = mvapich(self.spec) and not self.spec.satisfies("^[virtuals=mpi] mvapich2")
        if name == "ldlibs" and static and own_fortran:
            flags.append("-lmpifort")
        return flags, None, None
