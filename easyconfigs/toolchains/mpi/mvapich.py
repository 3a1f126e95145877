"""MVAPICH as an EasyBuild toolchain's MPI library: MPICH's wrappers under MVAPICH's module name."""

from typing import ClassVar

from easybuild.toolchains.mpi.mpich import Mpich


class Mvapich(Mpich):
    """MVAPICH 3.0 and newer (2.x is EasyBuild's own class Mvapich2)."""

    MPI_MODULE_NAME: ClassVar[list[str]] = ["MVAPICH"]

    def _set_mpi_compiler_variables(self):
        """Wrapper names: mpifort exists in every MVAPICH, whatever MPICH's version it counts as."""
        self.MPI_COMPILER_MPIF77 = "mpif77"
        self.MPI_COMPILER_MPIF90 = "mpifort"
        self.MPI_COMPILER_MPIFC = "mpifort"
        super()._set_mpi_compiler_variables()
