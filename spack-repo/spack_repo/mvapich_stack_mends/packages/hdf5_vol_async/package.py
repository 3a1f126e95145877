"""HDF5's asynchronous connector, over an MVAPICH that takes calls from any thread."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone

from spack.package import *

try:
    from spack_repo.builtin.packages.hdf5_vol_async.package import (
        Hdf5VolAsync as BuiltinHdf5VolAsync,
    )
except Exception as error:
    BuiltinHdf5VolAsync = gone("hdf5-vol-async", error)


class Hdf5VolAsync(Mend, BuiltinHdf5VolAsync):
    """Asynchronous I/O for HDF5, over MVAPICH.

    It calls MPI from a thread of its own and needs MPI_THREAD_MULTIPLE. Builtin's recipe requires
    that of Open MPI and MVAPICH2, and takes an MVAPICH built with less.
    """

    depends_on("mvapich threads=multiple", when="^[virtuals=mpi] mvapich")
