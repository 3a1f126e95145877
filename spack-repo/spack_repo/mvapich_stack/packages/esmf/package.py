"""ESMF, told which MPI it gets when that is MVAPICH."""

from spack_repo.builtin.packages.esmf.package import Esmf as BuiltinEsmf
from spack_repo.builtin.packages.esmf.package import MakefileBuilder as BuiltinMakefileBuilder

# Spack looks for builders in the module of the package: without this name, +python would be built
# by the generic one.
from spack_repo.builtin.packages.esmf.package import PythonPipBuilder  # noqa: F401
from spack_repo.mvapich_stack.products import mvapich

from spack.package import *


class Esmf(BuiltinEsmf):
    """The Earth System Modeling Framework, over MVAPICH.

    Builtin's recipe names every MPI but MVAPICH 3 and later to ESMF. Without ESMF_COMM, ESMF takes
    `mpiuni`, its own stub of MPI: it builds, and every rank runs alone. (ESMF's
    build_config/Linux.gfortran.default/build_rules.mk, "Default MPI setting".)
    """


class MakefileBuilder(BuiltinMakefileBuilder):
    """Sets ESMF_COMM, unless the variant `esmf_comm` does."""

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        super().setup_build_environment(env)
        if self.spec.satisfies("+mpi esmf_comm=auto") and mvapich(self.spec):
            # 8.9.0 renamed it: "for all versions of MVAPICH use ESMF_COMM=mvapich" (ESMF's commit
            # 9285fd0f82, build/common.mk). Earlier ones know mvapich2 alone, whose settings hold
            # nothing of version 2: mpif90, mpicxx and, to 8.2, -lmpifort where there is one.
            env.set("ESMF_COMM", "mvapich" if self.spec.satisfies("@8.9:") else "mvapich2")
