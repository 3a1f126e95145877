"""All links of a node into its fabric carry messages, by the variables that the module sets."""

import shlex

import reframe as rfm
from reframe.core.builtins import run_after, run_before, sanity_function
from reframe.core.exceptions import SanityError

import links
from mvapich_stack_mixin import MvapichStackMixin


@rfm.simple_test
class Rails(rfm.RegressionTest, MvapichStackMixin):
    """The bandwidth of all links of a node is that of one times their number."""

    needs = "rails"
    sourcepath = "mvstack_rails.c"
    build_system = "SingleSource"
    tags = {"smoke", "bench"}
    time_limit = "300s"

    @run_after("init")
    def where_there_are_several(self):
        self.valid_prog_environs = ["+mpi +rails"]

    @run_after("setup")
    def pairs_over_two_nodes(self):
        self.num_tasks = 2 * self.mpi["rails"]["pairs"]
        self.num_tasks_per_node = self.num_tasks // 2

    @run_before("compile")
    def name_it(self):
        self.executable = "./mvstack_rails"
        self.build_system.cflags = ["-O2"]

    @run_before("run", always_last=True)  # once the planned launcher is there
    def each_alone_then_all(self):
        """One link after the other by a pair of ranks, then the module's own settings."""
        planned = self.mpi["rails"]
        names = [name for name, settings in planned["alone"].items() if settings]
        self.job.num_tasks = self.num_tasks  # as ReFrame will set them
        self.job.num_tasks_per_node = self.num_tasks_per_node
        start = " ".join(self.job.launcher.command(self.job))
        for name, settings in planned["alone"].items():
            words = [f"{key}={value}" for key, value in settings.items()]
            program = shlex.join(["env", *words, self.executable, name, "1", *names])
            self.prerun_cmds = [
                *self.prerun_cmds,
                f"timeout 60 {start} {program} || echo 'failed {name}'",
            ]
        self.executable_opts = [links.ALL, str(planned["pairs"]), *names]

    @sanity_function
    def all_links_carry(self):
        text, planned = self.output(), self.mpi["rails"]
        if "one node " in text:
            wrong = "all ranks ran on one node, and links are between two"
            self.skip_if(self.current_partition.scheduler.is_local, wrong)
            raise SanityError(f"{wrong}: look at the job's nodes and the launch line")
        if wrong := links.fault(text, planned["links"], list(planned["alone"])):
            raise SanityError(wrong)
        return True

    @run_before("performance")
    def record(self):
        speed, _, _ = links.read(self.output())
        self.record_figures(
            (f"bandwidth_{name}_link", None, value, "MB/s") for name, value in speed.items()
        )
