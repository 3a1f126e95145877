"""SPH-EXA, over an MVAPICH that takes buffers on the GPU."""

from spack_repo.mvapich_stack_mends.build_systems.mend import AMD_GPUS, Mend, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.sphexa.package import Sphexa as BuiltinSphexa
except Exception as error:
    BuiltinSphexa = gone("sphexa", error)


class Sphexa(Mend, BuiltinSphexa):
    """The particle hydrodynamics program SPH-EXA, over MVAPICH.

    With +gpu_aware_mpi it hands pointers to GPU memory to MPI. Builtin's recipe requires that of
    MVAPICH with CUDA (since v2026.03.0 of MVAPICH-Plus instead), and of no MVAPICH with ROCm.
    """

    with when("+gpu_aware_mpi"):
        for gpu in AMD_GPUS:
            depends_on(
                f"mvapich +rocm amdgpu_target={gpu}",
                when=f"+rocm amdgpu_target={gpu} ^[virtuals=mpi] mvapich",
            )
        depends_on("mvapich +cuda", when="+cuda ^[virtuals=mpi] mvapich")
        depends_on("mvapich-plus gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich-plus")
        depends_on("mvapich2-gdr gpu=cuda", when="+cuda ^[virtuals=mpi] mvapich2-gdr")
        conflicts(
            "^[virtuals=mpi] mvapich-plus gpu=none",
            when="+rocm",
            msg="this MVAPICH-Plus knows no GPU; use gpu=rocm or gpu=mi300a",
        )
        conflicts(
            "^[virtuals=mpi] mvapich-plus gpu=cuda",
            when="+rocm",
            msg="this MVAPICH-Plus is for NVIDIA's GPUs; use gpu=rocm or gpu=mi300a",
        )
