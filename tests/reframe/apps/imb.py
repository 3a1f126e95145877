"""Intel's MPI Benchmarks: the figures of each of its programs that the package has."""

from pathlib import Path

import reframe as rfm
from reframe.core.builtins import run_after, run_before

import groups
from benchmark_group import BenchmarkGroup


@rfm.simple_test
class ImbBenchmarks(rfm.RunOnlyRegressionTest, BenchmarkGroup):
    """IMB-MPI1, RMA, NBC, EXT and IO, those that the package has; two ranks."""

    software = "IMB"
    tags = {"bench", "nightly"}
    time_limit = "1200s"
    kind, brought_by, partly = "imb", software, True

    @run_after("init")
    def only_where_it_is(self):
        self.valid_prog_environs = ["+mpi +package-imb"]

    @run_before("run")
    def sizes(self):
        Path(self.stagedir, "sizes.txt").write_text("".join(f"{one}\n" for one in groups.TOLD))

    def launches(self):
        return groups.IMB
