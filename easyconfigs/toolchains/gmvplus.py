"""Toolchain gmvplus: GCC and MVAPICH-Plus, as a site has it."""

from typing import ClassVar

from easybuild.toolchains.gcc import GccToolchain
from easybuild.toolchains.mpi.mvapich import Mvapich


class Gmvplus(GccToolchain, Mvapich):
    """Compiler toolchain with GCC and MVAPICH-Plus."""

    NAME = "gmvplus"
    SUBTOOLCHAIN = GccToolchain.NAME
    MPI_MODULE_NAME: ClassVar[list[str]] = ["MVAPICH-Plus"]
