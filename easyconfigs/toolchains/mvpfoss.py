"""Toolchain mvpfoss: GCC, MVAPICH-Plus, FlexiBLAS over OpenBLAS, FFTW and ScaLAPACK."""

from typing import ClassVar

from easybuild.toolchains.fft.fftw import Fftw
from easybuild.toolchains.gfbf import Gfbf
from easybuild.toolchains.gmvplus import Gmvplus
from easybuild.toolchains.linalg.flexiblas import FlexiBLAS
from easybuild.toolchains.linalg.scalapack import ScaLAPACK


class Mvpfoss(Gmvplus, FlexiBLAS, ScaLAPACK, Fftw):
    """What `foss` is, over MVAPICH-Plus instead of Open MPI."""

    NAME = "mvpfoss"
    SUBTOOLCHAIN: ClassVar[list[str]] = [Gmvplus.NAME, Gfbf.NAME]
