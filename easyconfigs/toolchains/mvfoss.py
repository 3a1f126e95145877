"""Toolchain mvfoss: GCC, MVAPICH, FlexiBLAS over OpenBLAS, FFTW and ScaLAPACK."""

from typing import ClassVar

from easybuild.toolchains.fft.fftw import Fftw
from easybuild.toolchains.gfbf import Gfbf
from easybuild.toolchains.gmvapich import Gmvapich
from easybuild.toolchains.linalg.flexiblas import FlexiBLAS
from easybuild.toolchains.linalg.scalapack import ScaLAPACK


class Mvfoss(Gmvapich, FlexiBLAS, ScaLAPACK, Fftw):
    """What `foss` is, over MVAPICH instead of Open MPI."""

    NAME = "mvfoss"
    SUBTOOLCHAIN: ClassVar[list[str]] = [Gmvapich.NAME, Gfbf.NAME]
