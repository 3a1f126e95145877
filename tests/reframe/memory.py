"""Memory gives the bandwidth that it gave, and on each node as much as on others of its kind."""

import re
from statistics import median, median_low

import reframe as rfm
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from mvapich_stack_mixin import MvapichStackMixin

SHARE = 0.75  # of the median of the other nodes, of an even number the lower one


def read(text):
    """``{node: GB/s}`` of what src/memory.c prints."""
    rows = re.findall(r"^node (\S+) ([\d.]+) GB/s$", text, re.M)
    return {name: float(value) for name, value in rows}


def slow(speed):
    """What is to be said of nodes that are slower than others; "" where there is none."""
    said = []
    for name, value in speed.items():
        others = [one for node, one in speed.items() if node != name]
        if others and value < SHARE * median_low(others):
            said.append(
                f"{name} has {value:g} GB/s of memory, {value / median_low(others):.2f} of the "
                f"{'median of the ' if len(others) > 1 else ''}other{'s' * (len(others) > 1)} "
                f"({median_low(others):g})"
            )
    return "; ".join(said)


@rfm.simple_test
class Memory(rfm.RegressionTest, MvapichStackMixin):
    """The memory of each node has three quarters of the bandwidth of the others' at least."""

    #: 0: as many as a job of the plan has. Set it to look at all nodes of a partition at once.
    nodes = variable(int, value=0, loggable=True)
    sourcepath = "memory.c"
    build_system = "SingleSource"
    tags = {"smoke", "bench"}
    time_limit = "300s"

    @run_after("setup")
    def on_whole_nodes(self):
        """A rank on each core: one alone does not use all that a node's memory gives."""
        extras = self.current_environ.extras
        self.nodes = self.nodes or extras["nodes"]
        self.num_tasks_per_node = extras["cores"]
        self.num_tasks = self.nodes * self.num_tasks_per_node

    @run_before("compile")
    def optimise(self):
        self.build_system.cflags = ["-O3"]
        self.executable_opts = [str(SHARE)]

    @sanity_function
    def no_node_is_slow(self):
        text = self.output()
        said = re.findall(r"^triad (\d+) MB, (\d+) MB of caches, (\d+) ranks$", text, re.M)
        ranks = [int(one) for _, _, one in said]
        if ranks != [self.num_tasks]:
            raise SanityError(
                f"{self.num_tasks} ranks were asked for; those that ended measured as worlds of "
                f"{ranks or 'nothing'}: see the check WorldSize"
            )
        self.speed = read(text)
        if len(self.speed) != self.nodes:
            raise SanityError(
                f"{self.nodes} nodes were asked for, and the ranks ran on {', '.join(self.speed)}: "
                f"look at the job's nodes and the launch line"
            )
        array, caches = map(int, said[0][:2])
        self.skip_if(
            array < caches,
            f"a node's free memory has room for arrays of {array} MB, which lie in its {caches} MB "
            f"of caches",
        )
        if wrong := slow(self.speed):
            raise SanityError(
                f"{wrong}. Look there for a memory module that is missing, slower or failing "
                f"(`dmidecode -t memory`, `ras-mc-ctl --errors`), at the BIOS's memory speed and "
                f"NUMA settings, and for processes of others"
            )
        return True

    @run_before("performance")
    def record(self):
        rows = {"memory_bandwidth": median(self.speed.values())}
        if len(self.speed) > 1:
            rows["memory_bandwidth_of_slowest"] = min(self.speed.values())
        self.record_figures((name, None, value, "GB/s") for name, value in rows.items())
