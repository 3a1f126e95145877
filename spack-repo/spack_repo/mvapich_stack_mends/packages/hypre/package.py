"""hypre, over an MVAPICH that takes buffers on the GPU."""

from spack_repo.mvapich_stack_mends.build_systems.mend import (
    Mend,
    builders,
    gone,
    needs_gpu_aware_mpi,
)

from spack.package import *

try:
    from spack_repo.builtin.packages.hypre.package import Hypre as BuiltinHypre
except Exception as error:
    BuiltinHypre = gone("hypre", error)
globals().update(builders(BuiltinHypre))


class Hypre(Mend, BuiltinHypre):
    """The solvers of hypre, over MVAPICH.

    With +gpu-aware-mpi it hands pointers to GPU memory to MPI. Builtin's recipe takes any MPI for
    it; one that knows no GPU reads such a pointer as one to host memory, and the program dies.
    """

    with when("+gpu-aware-mpi"):
        needs_gpu_aware_mpi()
