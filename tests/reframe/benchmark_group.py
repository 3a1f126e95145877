"""What the checks OsuBenchmarks and ImbBenchmarks share: several programs in one job, on two ranks.

They differ in where a program is found, and in what they run: tables of groups.py.
"""

import shlex
from pathlib import Path

from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

import figures
import groups
from mvapich_stack_mixin import MvapichStackMixin


class BenchmarkGroup(MvapichStackMixin):
    """A check that runs ``launches``, each within ``limit`` seconds, and records their figures."""

    limit = 240
    #: The package that brings them, where the MPI does not, and whose they are (figures.title).
    brought_by = kind = ""
    #: The command of a shell that prints where a program is.
    finds = "command -v"
    #: Whether a package may lack some of the programs.
    partly = False

    def launches(self):
        """What is run."""
        raise NotImplementedError

    @run_after("setup")
    def over_the_fabric(self):
        """Between two nodes where jobs are submitted: not in one node's memory."""
        self.sourcesdir = str(Path(__file__).resolve().parent / "src")
        if package := self.package(self.brought_by):
            self.modules = [package["module"]]
        if not self.current_partition.scheduler.is_local:
            self.num_tasks_per_node = 1

    @run_before("run", always_last=True)  # once the planned launcher is there
    def one_after_the_other(self):
        self.job.num_tasks = self.num_tasks  # as ReFrame will set them
        self.job.num_tasks_per_node = self.num_tasks_per_node
        start = shlex.quote(" ".join(self.job.launcher.command(self.job)))
        self.prerun_cmds = [*self.prerun_cmds, "source find_osu.sh", "source run_benchmarks.sh"]
        for one in self.launches():
            found = f'"$({self.finds} {one.program} || true)"'
            arguments = one.arguments.format(ranks=self.num_tasks)
            line = f"run_benchmark {one.name} {self.limit} {start} {found} {arguments}"
            self.prerun_cmds.append(line.rstrip())
        self.job.launcher, self.executable = getlauncher("local")(), "true"  # all has run by then

    @sanity_function
    def each_gave_its_figures(self):
        text = self.output()
        ran = groups.runs(text)
        self.skip_if(
            not ran, f"neither the MPI nor a module of the release brings {self.brought_by}"
        )
        self.rows = []
        for one in self.launches():
            if run := ran.get(one.name):
                self.rows += self.judged(one, run)
            elif not (self.partly and f"without {one.name}\n" in text):
                raise SanityError(f"{one.name} did not run: it is not beside {', '.join(ran)}")
        self.benchmark = figures.title(self.kind, text)
        return True

    def judged(self, launch, run):
        """The figures of one launch, of ranks that all loaded the MPI under test."""
        try:
            rows = groups.read(launch, run, self.limit)
        except ValueError as error:
            raise SanityError(str(error)) from None
        self.prove_traced(launch.name)
        return rows

    @run_before("performance")
    def record(self):
        self.record_figures(self.rows)
