"""What was tuned by measuring is still no slower than the plain build, where it was tuned."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

import figures
from benchmarks import Benchmark

ROUNDS = 7
# Sizes whose values the report shows beside the gain over all.
TOLD = (8, 1024, 16384, 65536, 1 << 20)


@rfm.simple_test
class Tuned(Benchmark):
    """Each benchmark in turns with what the module sets and without it; two ranks."""

    needs = "tuning"
    measure = parameter(["latency", "bandwidth", "allreduce"], loggable=True)
    tags = {"smoke", "bench"}
    time_limit = "600s"

    @run_after("init")
    def where_something_was_tuned(self):
        self.valid_prog_environs = ["+mpi +tuned"]

    @run_before("run", always_last=True)  # once the planned launcher is there
    def in_turns(self):
        self.job.num_tasks = self.num_tasks  # as ReFrame will set them
        self.job.num_tasks_per_node = self.num_tasks_per_node
        start = " ".join(self.job.launcher.command(self.job))
        without = " ".join(f"-u {name}" for name in self.mpi["tuning"])
        for way in ROUNDS * [f"env {without} ", ""]:
            self.prerun_cmds = [
                *self.prerun_cmds,
                f"echo 'round {'plain' if way else 'tuned'}'",
                f'{way}{start} "${{benchmark[@]}}"',
            ]
        self.prerun_cmds = [*self.prerun_cmds, "echo 'round last'"]

    @sanity_function
    def is_no_slower(self):
        text = self.output()
        try:
            self.gain, every, spread = figures.gain(text, self.measure)
            self.medians = figures.medians(text, self.measure)
        except ValueError as error:
            raise SanityError(str(error)) from None
        if figures.slower(self.gain, every, spread):
            raise SanityError(
                f"{self.measure} is {self.gain:.2f} times as fast with what was tuned as without, "
                f"and slower in each of {len(every)} rounds, which differ by {spread:.2f} without "
                f"it: run `mvstack tune` again, or take its file away"
            )
        return True

    @run_before("performance")
    def record(self):
        rows = [(f"tuned_{self.measure}", None, self.gain, "times as fast")]
        unit = figures.MEASURES[self.measure]
        for way, values in self.medians.items():
            told = (one for one in values.items() if one[0] in TOLD)
            rows += [(f"{way}_{self.measure}", size, value, unit) for size, value in told]
        self.record_figures(rows)
