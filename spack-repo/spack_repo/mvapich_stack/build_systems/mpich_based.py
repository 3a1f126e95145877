"""What every MPI over MPICH does for its dependents and users: its libraries and compilers."""

from spack.package import *


class MpichBased(PackageBase):
    """How dependents and users find the libraries and compilers of an MPI over MPICH.

    Nothing of it decides how the MPI itself is built: Spack's package hash is of package.py alone.
    """

    @property
    def libs(self):
        """libmpi; with the query `cxx` or `fortran` that binding's library before it.

        Spack would look for a library of the package's name, which no MPI has.
        """
        asked = self.spec.last_query.extra_parameters
        names = ["libmpicxx"] if "cxx" in asked else []
        names += ["libmpifort"] if "fortran" in asked else []
        return find_libraries([*names, "libmpi"], root=self.prefix, shared=True, recursive=True)

    def setup_mpi_wrapper_variables(self, env):
        """The compilers that this MPI is, for build systems that look at variables."""
        wrappers = {"MPICC": "mpicc", "MPICXX": "mpicxx"}
        if not self.spec.satisfies("~fortran"):
            wrappers.update(MPIFC="mpifort", MPIF77="mpif77", MPIF90="mpif90")
        for variable, wrapper in wrappers.items():
            env.set(variable, join_path(self.prefix.bin, wrapper))

    def setup_run_environment(self, env):
        """The same for users."""
        self.setup_mpi_wrapper_variables(env)

    def setup_dependent_build_environment(self, env, dependent_spec):
        """MPICC and the like, and the wrappers told to call Spack's compilers."""
        self.setup_mpi_wrapper_variables(env)
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
        wrappers = {"mpicc": "mpicc", "mpicxx": "mpicxx"}
        if not self.spec.satisfies("~fortran"):
            wrappers.update(mpifc="mpif90", mpif77="mpif77")
        for name, wrapper in wrappers.items():
            setattr(self.spec, name, join_path(self.prefix.bin, wrapper))
