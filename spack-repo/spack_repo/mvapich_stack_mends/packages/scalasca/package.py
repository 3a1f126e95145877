"""Scalasca, told which MPI it gets when that is MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.scalasca.package import Scalasca as BuiltinScalasca
except Exception as error:
    BuiltinScalasca = gone("scalasca", error)


class Scalasca(Mend, BuiltinScalasca):
    """The trace tools of Scalasca, over MVAPICH.

    Builtin's recipe passes --with-mpi for Open MPI and MPICH only. Without it configure looks for
    one: it stops where a second MPI is on PATH, and takes a library of MPI 4 for MPICH 1.
    "MPICH configurations can also be used for derived implementations such as MVAPICH" (INSTALL of
    Scalasca 2.5, which lists the words of --with-mpi).
    """

    def configure_args(self):
        args = super().configure_args()
        if mvapich(self.spec) and not any(one.startswith("--with-mpi=") for one in args):
            args.append("--with-mpi=mpich3")
        return args
