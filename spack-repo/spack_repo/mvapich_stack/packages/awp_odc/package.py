"""AWP-ODC: earthquakes' waves on GPUs. Builtin has no recipe of it."""

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class AwpOdc(MakefilePackage, CudaPackage):
    """Anelastic wave propagation by finite differences (AWP-ODC-OS), in C, CUDA and MPI.

    Its messages go through pinned host memory (cudaMallocHost in src/pmcl3d.c): it runs over an
    MPI that knows no GPU, and gains nothing from one that does.
    """

    homepage = "https://hpgeoc.github.io/awp-odc-os/"
    git = "https://github.com/HPGeoC/awp-odc-os.git"

    license("BSD-2-Clause", checked_by="mvapich-stack")

    # Upstream publishes no tarball of its own. The commit is the proof: git hashes its content.
    version("2025.05.15", commit="7c10ecf987515ea1c1ec6d681fd46f8556226c48")
    version("1605.1", commit="50c2fa7ec277d2aaa4a01b1c8ab3a10e0dad8440")

    variant("cuda", default=True, description="Compute on NVIDIA's GPUs; there is no other way")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("mpi")

    conflicts("~cuda", msg="AWP-ODC computes on GPUs only; use +cuda cuda_arch=…")
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="nvcc must know the GPU; use cuda_arch=70 (V100), 80 (A100), 90 (H100)",
    )
    conflicts(
        "^cuda@12:",
        when="@1605.1",
        msg="1605.1 reads through texture references, which CUDA 12 dropped; use @2025.05.15",
    )

    build_directory = "src"
    sanity_check_is_file = ["bin/pmcl3d"]

    def edit(self, spec, prefix):
        """Nothing: the makefiles are of named machines, and differ in variables given below."""

    @property
    def build_targets(self):
        cuda = self.spec["cuda"].prefix
        return [
            "--file",
            "Makefile.bluewaters.gnu" if self.spec.satisfies("@1605.1") else "Makefile.expanse",
            f"CC={self.spec['mpi'].mpicc}",
            f"INCDIR=-I{cuda.include}",
            f"GFLAGS={cuda.bin.nvcc} -use_fast_math {' '.join(self.nvcc_targets)}",
            f"LIB=-lm -ldl -L{self.spec['cuda'].libs.directories[0]} -lcudart -lstdc++",
            "pmcl3d",
        ]

    @property
    def nvcc_targets(self):
        """Code for each GPU that was asked for."""
        return self.cuda_flags(self.spec.variants["cuda_arch"].value)

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        install(join_path(self.build_directory, "pmcl3d"), prefix.bin)
        # The input of a small run; 1605.1 has none.
        for example in find(".", "awp-odc-os-*-example.tar.xz", recursive=False):
            mkdirp(prefix.share)
            install(example, prefix.share)
