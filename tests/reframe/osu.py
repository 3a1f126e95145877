"""The groups of the OSU Micro-Benchmarks: right where they compare, and their figures recorded."""

import reframe as rfm
from reframe.core.builtins import parameter

import groups
from benchmark_group import BenchmarkGroup


@rfm.simple_test
class OsuBenchmarks(rfm.RunOnlyRegressionTest, BenchmarkGroup):
    """A group of OSU's benchmarks, each with its own validation if it has one; two ranks."""

    group = parameter(
        ["point-to-point", "collective", "non-blocking", "one-sided", "startup"], loggable=True
    )
    tags = {"bench", "nightly"}
    time_limit = "1200s"
    kind, brought_by, finds = "osu", "OSU-Micro-Benchmarks", "find_osu"

    def launches(self):
        return groups.OSU[self.group]
