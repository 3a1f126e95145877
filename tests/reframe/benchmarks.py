"""Latency, bandwidth and allreduce for each message size: recorded, held against references."""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

import figures
from mvapich_stack_mixin import MvapichStackMixin

# Packages that bring a benchmark, best first.
BENCHMARKS = ("OSU-Micro-Benchmarks", "IMB")


@rfm.simple_test
class Benchmark(rfm.RegressionTest, MvapichStackMixin):
    """OSU's benchmark where there is one, otherwise Intel's, otherwise our own; two ranks."""

    measure = parameter(["latency", "bandwidth", "allreduce"], loggable=True)
    sourcepath = "mvstack_pingpong.c"
    build_system = "SingleSource"
    tags = {"smoke", "bench"}
    time_limit = "120s"

    @run_after("setup")
    def load_benchmarks(self):
        packages = filter(None, map(self.package, BENCHMARKS))
        self.modules = [package["module"] for package in packages]
        if not self.current_partition.scheduler.is_local:
            self.num_tasks_per_node = 1  # the fabric is measured, not one node's memory

    @run_before("compile")
    def name_our_own(self):
        self.executable = "./mvstack_pingpong"
        self.build_system.cflags = ["-O2"]

    @run_before("run")
    def pick(self):
        soname = self.mpi["believe"].get("soname", "")
        self.prerun_cmds = [
            *self.prerun_cmds,
            f"source pick_benchmark.sh {self.measure} '{soname}'",
        ]
        self.trace_loader('"${benchmark[@]}"')

    @sanity_function
    def measured_the_right_library(self):
        text = self.output()
        self.prove_traced()
        found = re.search(r"^benchmark (\w+) (\S+)", text, re.M)
        try:
            self.figures = figures.read(found[1], text, self.measure)
        except ValueError as error:
            raise SanityError(str(error)) from None
        self.benchmark = figures.title(found[1], text)
        return True

    @run_before("performance")
    def record(self):
        unit = figures.MEASURES[self.measure]
        self.record_figures(
            (self.measure, size, value, unit) for size, value in self.figures.items()
        )
