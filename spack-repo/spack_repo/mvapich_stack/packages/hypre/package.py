"""hypre, over an MVAPICH that takes buffers on the GPU."""

# Spack looks for builders in the module of the package: without these names hypre would be built by
# the generic ones.
from spack_repo.builtin.packages.hypre.package import (  # noqa: F401
    AutotoolsBuilder,
    CMakeBuilder,
)
from spack_repo.builtin.packages.hypre.package import Hypre as BuiltinHypre
from spack_repo.mvapich_stack.products import needs_gpu_aware_mpi

from spack.package import *


class Hypre(BuiltinHypre):
    """The solvers of hypre, over MVAPICH.

    With +gpu-aware-mpi it hands pointers to GPU memory to MPI. Builtin's recipe takes any MPI for
    it; one that knows no GPU reads such a pointer as one to host memory, and the program dies.
    """

    with when("+gpu-aware-mpi"):
        needs_gpu_aware_mpi()
