"""ESMF, told which MPI it gets when that is MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, builders, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.esmf.package import Esmf as BuiltinEsmf
except Exception as error:
    BuiltinEsmf = gone("esmf", error)
globals().update(builders(BuiltinEsmf))


class Esmf(Mend, BuiltinEsmf):
    """The Earth System Modeling Framework, over MVAPICH.

    Builtin's recipe names every MPI but MVAPICH 3 and later to ESMF. Without ESMF_COMM, ESMF takes
    `mpiuni`, its own stub of MPI: it builds, and every rank runs alone. (ESMF's
    build_config/Linux.gfortran.default/build_rules.mk, "Default MPI setting".)
    """


BuiltinMakefileBuilder = builders(BuiltinEsmf).get("MakefileBuilder")
if BuiltinMakefileBuilder:

    class MakefileBuilder(BuiltinMakefileBuilder):
        """Sets ESMF_COMM, unless the variant `esmf_comm` does."""

        def setup_build_environment(self, env: EnvironmentModifications) -> None:
            super().setup_build_environment(env)
            if self.spec.satisfies("+mpi esmf_comm=auto") and mvapich(self.spec):
                # 8.9.0 renamed it: "for all versions of MVAPICH use ESMF_COMM=mvapich" (ESMF's
                # commit 9285fd0f82, build/common.mk). Earlier ones know mvapich2 alone, whose
                # settings hold nothing of version 2: mpif90, mpicxx and, to 8.2, -lmpifort.
                env.set("ESMF_COMM", "mvapich" if self.spec.satisfies("@8.9:") else "mvapich2")
