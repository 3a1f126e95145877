"""LAMMPS, whose Kokkos hands GPU buffers to an MVAPICH that takes them."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, takes_gpu_buffers

from spack.package import *

try:
    from spack_repo.builtin.packages.lammps.package import Lammps as BuiltinLammps
except Exception as error:
    BuiltinLammps = gone("lammps", error)


class Lammps(Mend, BuiltinLammps):
    """The molecular dynamics program LAMMPS, over MVAPICH.

    Where mpi.h defines MPICH and not MVAPICH2_VERSION, as that of MVAPICH 3 and later, LAMMPS
    takes the MPI for one that knows no GPU, and copies every message through the host ("Detected
    MPICH. Disabling GPU-aware MPI"), unless a variable of Cray's says otherwise. (src/KOKKOS/
    kokkos.cpp of 4 February 2025.) Builtin's recipe does not set it. MVAPICH itself does not read
    that variable.
    """

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        super().setup_run_environment(env)
        gpu = self.spec.satisfies("+kokkos+cuda") or self.spec.satisfies("+kokkos+rocm")
        if gpu and takes_gpu_buffers(self.spec):
            env.set("MPICH_GPU_SUPPORT_ENABLED", "1")
