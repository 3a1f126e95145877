"""Rmpi, over MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.r_rmpi.package import RRmpi as BuiltinRRmpi
except Exception as error:
    BuiltinRRmpi = gone("r-rmpi", error)


class RRmpi(Mend, BuiltinRRmpi):
    """MPI for R, over MVAPICH.

    Builtin's recipe concretizes with MVAPICH and then ends with "Unsupported MPI type". Rmpi's
    type MPICH2 links libmpich, libmpl and libopa (configure.ac of Rmpi 0.7-2), names that
    MVAPICH 3 and 4 install as links to libmpi (their Makefile.am, "install-exec-hook").
    """

    def configure_args(self):
        if not mvapich(self.spec):
            return super().configure_args()
        return ["--with-Rmpi-type=MPICH2", f"--with-mpi={self.spec['mpi'].prefix}"]
