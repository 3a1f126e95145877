"""HPC Challenge: a real program over the MPI under test, verified by its own residual checks."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

import hpcc_output
from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Hpcc(rfm.RunOnlyRegressionTest, MvapichStackMixin):
    """HPL, PTRANS, DGEMM, STREAM, RandomAccess and FFT on two ranks, a problem of seconds."""

    tags = {"bench", "nightly"}
    sourcesdir = None
    time_limit = "300s"
    # Threads of the BLAS beside two ranks on two cores would measure the scheduler.
    env_vars = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    @run_after("setup")
    def load_hpcc(self):
        package = self.package("HPCC")
        self.skip_if(package is None, f"HPCC is not in the plan for {self.mpi['module']}")
        self.modules = [package["module"]]
        self.benchmark = f"HPCC {package['version']}"

    @run_before("run")
    def write_input(self):
        Path(self.stagedir, "hpccinf.txt").write_text(hpcc_output.input_file(self.num_tasks))
        self.trace_loader("hpcc")

    @sanity_function
    def verified(self):
        self.output()
        self.prove_traced()
        complaints = hpcc_output.complaints(self.file("hpccoutf.txt"), self.num_tasks)
        if complaints:
            raise SanityError(f"HPCC did not verify: {'; '.join(complaints)}")
        return True

    @run_before("performance")
    def record(self):
        values = hpcc_output.summary(self.file("hpccoutf.txt"))
        self.record_figures(
            (name, None, float(values[name]), unit) for name, unit in hpcc_output.FIGURES.items()
        )
