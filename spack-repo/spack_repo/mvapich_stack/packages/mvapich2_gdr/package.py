"""MVAPICH2-GDR: the GPU-aware MVAPICH2, binaries only; for sites that still run it."""

import re

from spack_repo.mvapich_stack.build_systems.binary_mvapich2 import BinaryMvapich2

from spack.package import *

MIRROR = "https://mvapich.cse.ohio-state.edu/download/mvapich/spack-mirror/mvapich2-gdr/"


class Mvapich2Gdr(BinaryMvapich2):
    """MVAPICH2-GDR: MPI for NVIDIA and AMD GPUs, as binaries of The Ohio State University.

    It cannot be built from source. Declare the site's own installation as an external
    (`spack external find mvapich2-gdr`). MVAPICH-Plus is its successor.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = f"{MIRROR}mvapich2-gdr-2.3.6.tar.gz"
    calls_itself = "MVAPICH2-GDR"
    mirror = MIRROR
    instead = "mvapich-plus, its successor, or mvapich +cuda, built from source"

    # Closed source; its terms come with the binaries and were not read.
    license("LicenseRef-MVAPICH2-GDR")

    # Of the file that stands for the source in the makers' binary mirror. An older recipe of
    # theirs gave 6c46e374… for 2.3.6: the file was replaced.
    version("2.3.6", sha256="618408431348164c0824f3a72dc406763f169f7f5400f3cc15dfebf8d7166005")

    variant(
        "gpu",
        default="cuda",
        values=("cuda", "rocm"),
        multi=False,
        description="GPU buffers: of CUDA or of ROCm, never of both",
    )
    variant(
        "distribution",
        default="stock-ofed",
        values=("stock-ofed", "mofed4.5", "mofed4.6", "mofed4.7", "mofed5.0"),
        multi=False,
        description="InfiniBand software that the binaries were made for",
    )
    variant("mcast", default=True, description="Multicast of the InfiniBand fabric")
    variant("openacc", default=False, description="OpenACC buffers")
    variant("core_direct", default=False, description="Collectives on the network card")

    depends_on("cuda", when="gpu=cuda")
    depends_on("hip", when="gpu=rocm")

    for _cuda in ("cuda@:9.2.87", "cuda@11.2.3:"):
        conflicts(
            f"^{_cuda}",
            when="gpu=cuda",
            msg="MVAPICH2-GDR 2.3.6 was given out for CUDA 9.2.88 to 11.2.2: use one of these, "
            "mvapich-plus, or mvapich +cuda from source",
        )
    for _hip in ("hip@:3.8", "hip@4.2:"):
        conflicts(
            f"^{_hip}",
            when="gpu=rocm",
            msg="MVAPICH2-GDR 2.3.6 was given out for ROCm 3.9 to 4.1: declare the site's as an "
            "external hip, or use mvapich-plus, or mvapich +rocm from source",
        )

    @classmethod
    def variants_said(cls, text):
        """Variants from the text of `mpiname -a` or `mpichversion`."""
        said = ["gpu=" + ("rocm" if re.search(r"--enable-(rocm|hip)", text) else "cuda")]
        said += super().variants_said(text)
        said.append("~mcast" if "--disable-mcast" in text else "+mcast")
        said.append("+openacc" if "--enable-openacc" in text else "~openacc")
        said.append("+core_direct" if "--with-core-direct" in text else "~core_direct")
        return said
