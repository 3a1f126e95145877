"""ABINIT, with GPU buffers handed to any MVAPICH that takes them."""

from spack_repo.builtin.packages.abinit.package import Abinit as BuiltinAbinit
from spack_repo.mvapich_stack.products import AMD_GPUS

from spack.package import *

# What builtin's two requirements leave out: the condition of each, and the MVAPICHs that meet it.
ADMITTED = {
    "+gpu_aware_mpi+cuda": ("^mvapich-plus gpu=cuda", "^mvapich2-gdr gpu=cuda"),
    "+gpu_aware_mpi+rocm": (
        "^mvapich +rocm",
        "^mvapich-plus gpu=rocm",
        "^mvapich-plus gpu=mi300a",
        "^mvapich2-gdr gpu=rocm",
    ),
}


class Abinit(BuiltinAbinit):
    """The electronic structure program ABINIT, over MVAPICH.

    Builtin's +gpu_aware_mpi lists the MPIs that it takes: MVAPICH with ROCm, MVAPICH-Plus and
    MVAPICH2-GDR are not among them, and are refused.
    """

    for gpu in AMD_GPUS:
        depends_on(
            f"mvapich amdgpu_target={gpu}",
            when=f"+gpu_aware_mpi+rocm amdgpu_target={gpu} ^[virtuals=mpi] mvapich +rocm",
        )


# A requirement is met or not: a second one cannot widen the first. So builtin's lists are widened.
for condition, others in ADMITTED.items():
    Abinit.requirements[Spec(condition)] = [
        (allowed + tuple(Spec(one) for one in others), policy, message)
        for allowed, policy, message in Abinit.requirements[Spec(condition)]
    ]
