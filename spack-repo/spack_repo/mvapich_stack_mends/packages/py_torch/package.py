"""PyTorch, whose backend `mpi` takes tensors on the GPU over an MVAPICH that does."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, takes_gpu_buffers

from spack.package import *

try:
    from spack_repo.builtin.packages.py_torch.package import PyTorch as BuiltinPyTorch
except Exception as error:
    BuiltinPyTorch = gone("py-torch", error)


class PyTorch(Mend, BuiltinPyTorch):
    """PyTorch, over MVAPICH.

    torch.distributed's backend `mpi` asks MPIX_Query_cuda_support whether the MPI takes tensors on
    the GPU, where MPIX_CUDA_AWARE_SUPPORT is defined. Open MPI's mpi-ext.h defines it; MVAPICH has
    the function in mpi.h, and not the macro: so what builtin's recipe builds refuses every CUDA
    tensor. (torch/csrc/distributed/c10d/ProcessGroupMPI.cpp: "currently we only support CUDA aware
    MPI ops through Open MPI".)
    """

    def flag_handler(self, name, flags):
        if (
            name == "cxxflags"
            and self.spec.satisfies("+cuda+mpi")
            and takes_gpu_buffers(self.spec)
        ):
            flags.append("-DMPIX_CUDA_AWARE_SUPPORT=1")
        return flags, None, None
