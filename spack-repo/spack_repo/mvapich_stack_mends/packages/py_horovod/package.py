"""Horovod, whose reductions on GPU buffers can go through MVAPICH."""

from spack_repo.mvapich_stack_mends.build_systems.mend import Mend, gone, mvapich

from spack.package import *

try:
    from spack_repo.builtin.packages.py_horovod.package import PyHorovod as BuiltinPyHorovod
except Exception as error:
    BuiltinPyHorovod = gone("py-horovod", error)


class PyHorovod(Mend, BuiltinPyHorovod):
    """The training framework Horovod, over MVAPICH.

    Builtin's recipe makes a Horovod that knows no GPU out of +cuda tensor_ops=mpi: it sets
    HOROVOD_CPU_OPERATIONS and nothing else, and takes an MPI without CUDA. An MPI that takes GPU
    buffers is asked for by HOROVOD_GPU_ALLREDUCE=MPI and the like (Horovod's docs/gpus.rst).
    """

    with when("+cuda tensor_ops=mpi"):
        depends_on("cuda")
        depends_on("mvapich +cuda", when="^[virtuals=mpi] mvapich")
        depends_on("mvapich-plus gpu=cuda", when="^[virtuals=mpi] mvapich-plus")
        depends_on("mvapich2-gdr gpu=cuda", when="^[virtuals=mpi] mvapich2-gdr")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        super().setup_build_environment(env)
        if not (self.spec.satisfies("+cuda tensor_ops=mpi") and mvapich(self.spec)):
            return
        env.set("HOROVOD_GPU", "CUDA")
        env.set("HOROVOD_CUDA_HOME", self.spec["cuda"].prefix)
        env.set("HOROVOD_BUILD_CUDA_CC_LIST", ",".join(self.spec.variants["cuda_arch"].value))
        for operation in ("ALLREDUCE", "ALLGATHER", "BROADCAST"):
            env.set(f"HOROVOD_GPU_{operation}", "MPI")
