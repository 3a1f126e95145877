"""Score-P, told which MPI it gets when that is MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.scorep.package import Scorep as BuiltinScorep
except Exception as error:
    BuiltinScorep = gone("scorep", error)


class Scorep(Mend, BuiltinScorep):
    """The measurement system Score-P, over MVAPICH.

    Builtin's recipe passes --with-mpi for MPICH and MVAPICH2, and leaves MVAPICH 3 and later to
    what configure finds: it stops where a second MPI is on PATH (Intel's mpiicc, IBM's mpcc), and
    before 8.1 it takes a library of MPI 4 for MPICH 1. (Score-P's
    build-config/common/m4/afs_compiler_mpi.m4.) The settings of MPICH 3 fit every MVAPICH: the
    wrappers take -cc=, -cxx= and -fc=.
    """

    def configure_args(self):
        args = super().configure_args()
        if mvapich(self.spec) and not any(one.startswith("--with-mpi=") for one in args):
            args.append("--with-mpi=mpich3")
        return args
