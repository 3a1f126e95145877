"""MVAPICH2-X: MVAPICH2 with PGAS models and XPMEM, binaries only; for sites that still run it."""

import re

from spack_repo.mvapich_stack.build_systems.binary_mvapich2 import BinaryMvapich2

from spack.package import *

MIRROR = "https://mvapich.cse.ohio-state.edu/download/mvapich/spack-mirror/mvapich2x/"


class Mvapich2X(BinaryMvapich2):
    """MVAPICH2-X: MPI with OpenSHMEM, UPC, UPC++ and CAF in one runtime, as binaries.

    It cannot be built from source. Declare the site's own installation as an external
    (`spack external find mvapich2-x`). Spack once called it mvapich2x.
    """

    homepage = "https://mvapich.cse.ohio-state.edu/"
    url = f"{MIRROR}mvapich2x-2.3.tar.gz"
    calls_itself = "MVAPICH2-X"
    mirror = MIRROR
    instead = "mvapich2 2.3.7, built from source (no PGAS), or mvapich"

    # Closed source; its terms come with the binaries and were not read.
    license("LicenseRef-MVAPICH2-X")

    # Of the file that stands for the source in the makers' binary mirror.
    version("2.3", sha256="fc47070e2e9fac09b97022be2320200d732a0a4a820a2b51532b88f8ded14536")

    variant(
        "feature",
        default="basic",
        values=("basic", "basic-xpmem", "advanced", "advanced-xpmem"),
        multi=False,
        description="basic; advanced: also DC, UMR and Core-Direct; -xpmem: copies by XPMEM",
    )
    variant(
        "distribution",
        default="stock-ofed",
        values=(
            "stock-ofed",
            "mofed4.5",
            "mofed4.6",
            "mofed4.7",
            "mofed5.0",
            "ifs10.6",
            "ifs10.9",
        ),
        multi=False,
        description="Fabric software that the binaries were made for; ifs: Intel Omni-Path",
    )

    for _feature in ("basic-xpmem", "advanced-xpmem"):
        depends_on("xpmem", when=f"feature={_feature}")

    for _target in ("aarch64:", "ppc64le:"):
        # A conflict: of a requirement Spack leaves the message out.
        conflicts(
            f"target={_target}",
            msg="MVAPICH2-X is given out for x86_64 only: use mvapich2, built from source",
        )

    @classmethod
    def variants_said(cls, text):
        """Variants from the text of `mpiname -a` or `mpichversion`."""
        feature = "advanced" if re.search(r"--enable-(dc|umr)\b", text) else "basic"
        said = [f"feature={feature}{'-xpmem' if '--with-xpmem' in text else ''}"]
        return said + super().variants_said(text)
