"""hypre, over an MVAPICH that takes buffers on the GPU."""

# Spack looks for builders in the module of the package: without these names hypre would be built by
# the generic ones.
from spack_repo.builtin.packages.hypre.package import (  # noqa: F401
    AutotoolsBuilder,
    CMakeBuilder,
)
from spack_repo.builtin.packages.hypre.package import Hypre as BuiltinHypre
from spack_repo.mvapich_stack.products import AMD_GPUS

from spack.package import *


class Hypre(BuiltinHypre):
    """The solvers of hypre, over MVAPICH.

    With +gpu-aware-mpi it hands pointers to GPU memory to MPI. Builtin's recipe takes any MPI for
    it; one that knows no GPU reads such a pointer as one to host memory, and the program dies.
    """

    with when("+gpu-aware-mpi"):
        depends_on("mvapich +cuda", when="+cuda ^[virtuals=mpi] mvapich")
        depends_on("mvapich-plus gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich-plus")
        depends_on("mvapich2-gdr gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich2-gdr")
        for gpu in AMD_GPUS:
            depends_on(
                f"mvapich +rocm amdgpu_target={gpu}",
                when=f"+rocm amdgpu_target={gpu} ^[virtuals=mpi] mvapich",
            )
        depends_on("mvapich-plus +rocm", when="+rocm ^[virtuals=mpi] mvapich-plus")
        depends_on("mvapich2-gdr gpu=rocm", when="+rocm ^[virtuals=mpi] mvapich2-gdr")
