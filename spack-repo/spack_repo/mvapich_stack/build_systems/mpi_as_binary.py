"""What the MPIs that are only given out as binaries share: their libraries and compilers."""

from spack.package import *


class MpiAsBinary(PackageBase):
    """An MPI over MPICH: how dependents and users find its libraries and compilers."""

    @property
    def libs(self):
        """libmpi; with the query `cxx` or `fortran` that binding's library before it."""
        asked = self.spec.last_query.extra_parameters
        names = ["libmpicxx"] if "cxx" in asked else []
        names += ["libmpifort"] if "fortran" in asked else []
        return find_libraries([*names, "libmpi"], root=self.prefix, shared=True, recursive=True)

    def setup_run_environment(self, env):
        """The compilers that this MPI is, for build systems that look at variables."""
        for variable, wrapper in (
            ("MPICC", "mpicc"),
            ("MPICXX", "mpicxx"),
            ("MPIFC", "mpifort"),
            ("MPIF77", "mpif77"),
            ("MPIF90", "mpif90"),
        ):
            env.set(variable, join_path(self.prefix.bin, wrapper))

    def setup_dependent_build_environment(self, env, dependent_spec):
        """MPICC and the like, and the wrappers told to call Spack's compilers."""
        self.setup_run_environment(env)
        module = dependent_spec.package.module
        for name, compiler in (
            ("MPICH_CC", "spack_cc"),
            ("MPICH_CXX", "spack_cxx"),
            ("MPICH_FC", "spack_fc"),
            ("MPICH_F90", "spack_fc"),
            ("MPICH_F77", "spack_f77"),
        ):
            if hasattr(module, compiler):
                env.set(name, getattr(module, compiler))

    def setup_dependent_package(self, module, dependent_spec):
        """The compilers that recipes ask the spec of their MPI for."""
        wrappers = {"mpicc": "mpicc", "mpicxx": "mpicxx", "mpifc": "mpif90", "mpif77": "mpif77"}
        for name, wrapper in wrappers.items():
            setattr(self.spec, name, join_path(self.prefix.bin, wrapper))
