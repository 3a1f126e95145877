"""Berkeley UPC: the runtime and driver of Unified Parallel C. Builtin has no recipe of it."""

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class BerkeleyUpc(AutotoolsPackage):
    """Unified Parallel C over GASNet, which is in the tarball: the driver upcc and the runtime.

    upcc hands the program to a translator. Without another it asks that of Lawrence Berkeley
    National Laboratory over HTTP; a site without a network names its own in etc/upcc.conf.
    Unrun: the tarball could not be had where the recipe was written.
    """

    homepage = "https://upc.lbl.gov/"
    url = "https://upc.lbl.gov/download/release/berkeley_upc-2020.12.0.tar.gz"

    license("LicenseRef-Berkeley-UPC", checked_by="mvapich-stack")  # LICENSE.TXT of the tarball

    # The hash is that of nixpkgs (bupc).
    version("2020.12.0", sha256="25da453919571e909013e4e2be84109e3425c5037b0bc04d7c7bd3392c176d84")

    variant(
        "conduits",
        default="smp,udp,mpi",
        values=("smp", "udp", "mpi", "ibv"),
        multi=True,
        description="GASNet's networks; smp is one node, ibv is InfiniBand",
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("perl", type=("build", "run"))
    depends_on("mpi")
    depends_on("rdma-core", when="conduits=ibv")

    def configure_args(self):
        """Each network is said, so that configure builds no other that it finds."""
        spec = self.spec
        args = []
        for name in ("smp", "udp", "mpi", "ibv"):
            switch = "enable" if spec.satisfies(f"conduits={name}") else "disable"
            args.append(f"--{switch}-{name}")
        return [
            *args,
            "--disable-auto-conduit-detect",
            f"--with-mpi-cc={spec['mpi'].mpicc}",
            f"MPI_CC={spec['mpi'].mpicc}",
        ]
