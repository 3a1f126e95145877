"""ABINIT, with GPU buffers handed to any MVAPICH that takes them."""

from spack_repo.mvapich_stack_mends.build_systems.mend import AMD_GPUS, Mend, admit, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.abinit.package import Abinit as BuiltinAbinit
except Exception as error:
    BuiltinAbinit = gone("abinit", error)

# What builtin's two requirements leave out: the condition of each, and the MVAPICHs that meet it.
ADMITTED = {
    "+gpu_aware_mpi+cuda": (
        "^mvapich +cuda",
        "^mvapich2 +cuda",
        "^mvapich-plus gpu=cuda",
        "^mvapich2-gdr gpu=cuda",
    ),
    "+gpu_aware_mpi+rocm": (
        "^mvapich +rocm",
        "^mvapich-plus gpu=rocm",
        "^mvapich-plus gpu=mi300a",
        "^mvapich2-gdr gpu=rocm",
    ),
}


class Abinit(Mend, BuiltinAbinit):
    """The electronic structure program ABINIT, over MVAPICH.

    Builtin's +gpu_aware_mpi lists the MPIs that it takes: MVAPICH with ROCm, MVAPICH-Plus and
    MVAPICH2-GDR are not among them, and are refused; since v2026.03.0 MVAPICH with CUDA, too.
    """

    for gpu in AMD_GPUS:
        depends_on(
            f"mvapich amdgpu_target={gpu}",
            when=f"+gpu_aware_mpi+rocm amdgpu_target={gpu} ^[virtuals=mpi] mvapich +rocm",
        )


for condition, others in ADMITTED.items():
    admit(Abinit, condition, others)
