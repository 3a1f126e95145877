"""SIONlib, with the compiler wrappers of MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.sionlib.package import Sionlib as BuiltinSionlib
except Exception as error:
    BuiltinSionlib = gone("sionlib", error)


class Sionlib(Mend, BuiltinSionlib):
    """The parallel I/O library SIONlib, over MVAPICH.

    Builtin's recipe gives MVAPICH2 the settings `mpich2` and MVAPICH none, where configure then
    takes a library of MPI 4 for MPICH 1. Both call `mpif77 -f77=…` and `mpif90 -f90=…`, which no
    MVAPICH since 2.3.7 takes: gfortran stops at "unrecognized command-line option" (tried with
    MVAPICH 4.0). The settings `mpich3` say MPICH_FC instead. (SIONlib 1.7.6: config/select-mpi.sh,
    mf/mpi-mpich*.def.)
    """

    def configure_args(self):
        args = super().configure_args()
        if not mvapich(self.spec):
            return args
        return [one for one in args if not one.startswith("--mpi=")] + ["--mpi=mpich3"]
