"""GPU buffers: every message and collective out of and into a GPU's memory is right."""

import re

import reframe as rfm
from reframe.core.builtins import run_after, sanity_function
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class GpuBuffers(rfm.RegressionTest, MvapichStackMixin):
    """Messages, derived types, collectives, put and get of GPU memory to 8 MiB: every value."""

    needs = "gpu"
    sourcepath = "gpu_buffers.c"
    tags = {"smoke", "correct"}
    time_limit = "300s"

    @run_after("init")
    def ask_for_gpus(self):
        """Where the MPI takes GPU buffers; two ranks, which may have to share a GPU."""
        self.valid_prog_environs = ["+mpi +gpu"]
        self.num_tasks = 2

    @sanity_function
    def every_value_is_right(self):
        text = self.output()
        said = re.search(r"^(lost|none|wrong)[: ](.*)$", text, re.M)
        if said:
            raise SanityError(f"{said[1]}: {said[2].strip()}. {ADVICE[said[1]]}")
        if not re.search(rf"^right on {self.num_tasks} ranks$", text, re.M):
            steps = re.findall(r"^at (.*) of (\d+)$", text, re.M)
            where = "{} of {} doubles".format(*steps[-1]) if steps else "MPI_Init"
            raise SanityError(f"the program did not finish: it ended in {where}; see its errors")
        rates = dict(re.findall(r"^(bandwidth|strided) ([\d.]+) MB/s$", text, re.M))
        names = {"bandwidth": "gpu_bandwidth", "strided": "gpu_strided_bandwidth"}
        figures = [(names[one], 1 << 22, float(rate), "MB/s") for one, rate in rates.items()]
        self.record_figures(figures)
        return True


ADVICE = {
    "lost": "This MPI was built without GPUs: look at `ldd` of libmpi.so",
    "none": "Look at `nvidia-smi` or `rocm-smi`, CUDA_VISIBLE_DEVICES and what the job asked for",
    "wrong": "Look at the transports of the GPU (`ucx_info -d`, FI_PROVIDER)",
}
