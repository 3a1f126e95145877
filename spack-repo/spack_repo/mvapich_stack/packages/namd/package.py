"""NAMD, over MPI."""

from spack_repo.builtin.packages.namd.package import Namd as BuiltinNamd

from spack.package import *


class Namd(BuiltinNamd):
    """The molecular dynamics program NAMD, over MPI.

    Builtin's recipe takes Charm++ as it comes, and that is backend=netlrts, over UDP: an MPI in the
    spec is then used to start processes at most, and no message goes through it.
    """

    variant("mpi", default=True, description="Let Charm++ send its messages over MPI")

    depends_on("mpi", when="+mpi")
    depends_on("charmpp backend=mpi", when="+mpi")
