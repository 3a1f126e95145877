"""Toolchain gmvapich: GCC and MVAPICH."""

from easybuild.toolchains.gcc import GccToolchain
from easybuild.toolchains.mpi.mvapich import Mvapich


class Gmvapich(GccToolchain, Mvapich):
    """Compiler toolchain with GCC and MVAPICH."""

    NAME = "gmvapich"
    SUBTOOLCHAIN = GccToolchain.NAME
