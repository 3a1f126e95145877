"""Toolchain mpfoss: GCC, MPICH, FlexiBLAS over OpenBLAS, FFTW and ScaLAPACK."""

from typing import ClassVar

from easybuild.toolchains.fft.fftw import Fftw
from easybuild.toolchains.gfbf import Gfbf
from easybuild.toolchains.gmpich import Gmpich
from easybuild.toolchains.linalg.flexiblas import FlexiBLAS
from easybuild.toolchains.linalg.scalapack import ScaLAPACK


class Mpfoss(Gmpich, FlexiBLAS, ScaLAPACK, Fftw):
    """What `foss` is, over MPICH (the reference MPI) instead of Open MPI."""

    NAME = "mpfoss"
    SUBTOOLCHAIN: ClassVar[list[str]] = [Gmpich.NAME, Gfbf.NAME]
