"""CP2K, with the rules for MPICH that MVAPICH needs too."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, builders, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.cp2k.package import Cp2k as BuiltinCp2k
except Exception as error:
    BuiltinCp2k = gone("cp2k", error)
globals().update(builders(BuiltinCp2k))


class Cp2k(Mend, BuiltinCp2k):
    """The chemistry and solid state program CP2K, over MVAPICH.

    Builtin's rules for MPICH skip MVAPICH, which is made from it. (1) CP2K is Fortran and needs an
    MPI that has it. (2) gfortran 10 and later refuses two calls of one MPI routine with arguments
    of two types where the module `mpi` does not declare it: so do MPICH 4.0 and earlier, and what
    is made from them, MVAPICH 3 and MVAPICH2. MVAPICH 4 (of MPICH 4.3) declares them, and takes
    TYPE(C_PTR) where MPICH 4.1 did not: it needs neither the flag nor +mpi_f08 (both tried with
    MVAPICH 4.0 and gfortran 12).
    """

    depends_on("mvapich+fortran", when="+mpi ^[virtuals=mpi] mvapich")

    def flag_handler(self, name, flags):
        if name == "fflags" and self.spec.satisfies("+mpi %fortran=gcc@10:"):
            mpi = mvapich(self.spec)
            if mpi and not mpi.satisfies("mvapich@4:"):
                flags.append("-fallow-argument-mismatch")
        return flags, None, None
