from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Mvapich(Package):
    """Stands for MVAPICH: its variants as far as a plan names them, and two small scripts."""

    homepage = "https://mvapich.cse.ohio-state.edu/"
    has_code = False

    version("4.0")

    variant("netmod", default="ofi", values=("ofi", "ucx"), multi=True)
    variant("fabrics", default="shm", values=("shm", "tcp", "infiniband"), multi=True)
    variant("pmi", default="simple", values=("simple", "pmi2", "pmix"), multi=False)
    variant("process_managers", default="hydra", values=("hydra", "slurm"), multi=True)
    variant("file_systems", default="ufs", values=("ufs", "nfs", "lustre"), multi=True)
    variant("omb", default=True)

    provides("mpi@:4.0")
    depends_on("c", type="build")
    depends_on("libfabric", when="netmod=ofi")

    def setup_run_environment(self, env):
        env.set("MPICC", self.prefix.bin.mpicc)

    def install(self, spec, prefix):
        mkdirp(prefix.bin, prefix.lib)
        touch(prefix.lib.join("libmpi.so.0"))
        for name in ("mpicc", "mpiexec"):
            with open(join_path(prefix.bin, name), "w") as script:
                script.write(f"#!/bin/sh\necho {name} of the stand-in\n")
            set_executable(join_path(prefix.bin, name))
