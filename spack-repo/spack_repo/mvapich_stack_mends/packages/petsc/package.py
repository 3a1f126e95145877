"""PETSc, over an MVAPICH that takes buffers on the GPU; and with hypre."""

from spack_repo.mvapich_stack_mends.build_systems.mend import (
    Mend,
    ask_not_for,
    gone,
    needs_gpu_aware_mpi,
)

from spack.package import *

try:
    from spack_repo.builtin.packages.petsc.package import Petsc as BuiltinPetsc
except Exception as error:
    BuiltinPetsc = gone("petsc", error)

# Builds of MVAPICH that bring no mpiexec.
NO_MPIEXEC = (
    "mvapich process_managers=slurm",
    "mvapich process_managers=none",
    "mvapich-plus process_managers=slurm",
    "mvapich-plus process_managers=none",
    "mvapich2 process_managers=slurm",
    "mvapich2-gdr process_managers=slurm",
    "mvapich2-x process_managers=slurm",
)


class Petsc(Mend, BuiltinPetsc):
    """The solvers of PETSc, over MVAPICH.

    With GPUs PETSc gives MPI a buffer on the GPU when it starts, and ends where that fails ("your
    MPI is not GPU-aware"). Builtin's recipe refuses an Open MPI without CUDA, and takes an MVAPICH
    without.

    Its configure runs programs by the first mpiexec, mpirun or srun that it finds: another MPI's,
    or srun, which waits for a node, where MVAPICH was built for srun and has no mpiexec. Builtin's
    recipe has +batch for that, and leaves it to the user. (config/BuildSystem/config/packages/
    MPI.py of PETSc 3.18.5, configureMPIEXEC.)

    And builtin's cannot have hypre: it asks for hypre~internal-superlu, a variant that hypre has
    to 2.12.1 only, where PETSc 3.22 needs 2.32. The solver then leaves hypre out, unless it is
    asked for by name. (spack-packages v2025.11.0.)
    """

    for mpi in NO_MPIEXEC:
        requires(
            "+batch",
            when=f"+mpi ^[virtuals=mpi] {mpi}",
            msg="this MPI has no mpiexec for the programs that PETSc's configure runs; use +batch",
        )
    needs_gpu_aware_mpi()


ask_not_for("internal-superlu", Petsc, "hypre")
