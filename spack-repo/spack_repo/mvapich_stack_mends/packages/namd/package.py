"""NAMD, over MPI."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.namd.package import Namd as BuiltinNamd
except Exception as error:
    BuiltinNamd = gone("namd", error)


class Namd(Mend, BuiltinNamd):
    """The molecular dynamics program NAMD, over MPI.

    Builtin's recipe takes Charm++ as it comes, and that is backend=netlrts, over UDP. So does
    `namd ^mvapich`, with the MPI beneath another dependency (tried: Spack 1.1.0): no message of
    NAMD goes through it.
    """

    variant("mpi", default=True, description="Let Charm++ send its messages over MPI")

    depends_on("mpi", when="+mpi")
    depends_on("charmpp backend=mpi", when="+mpi")
