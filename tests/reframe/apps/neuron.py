"""NEURON: a spike goes round a ring of cells on all ranks, at the same times on any number.

Both engines do it, NEURON's own and CoreNEURON, and are to find the same spikes.
"""

import re

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before

import judging
from app_mixin import SOURCES, AppMixin

CELLS = 16
# Of src/neuron_ring.hoc, in ms, as 8.2.6 gave them on one rank. A cell fires 2.6 ms after the one
# before it: 1.5 ms are the wire's, the rest is its own membrane's.
FIRST, BETWEEN, SPIKES = 3.1, 2.6, 76
STEP = 0.025


@rfm.simple_test
class Neuron(rfm.RunOnlyRegressionTest, AppMixin):
    """Sixteen cells on the ranks fire one after the other, at their times to the step."""

    software = "NEURON"
    tags = {"app", "nightly", "neuron"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def trace(self):
        self.trace_loader("nrniv", "-mpi", str(SOURCES / "neuron_ring.hoc"))


@rfm.simple_test
class CoreNeuron(Neuron):
    """The same sixteen cells, advanced by CoreNEURON."""

    software = "NEURON"
    tags = {"app", "nightly", "neuron"}
    ranks = parameter([1, 2, 4])

    @run_after("setup")
    def only_where_it_was_built(self):
        """Before 9 CoreNEURON's source was not everywhere."""
        older = self.package(self.software)["version"].startswith("8.")
        self.skip_if(older, "this NEURON may be without CoreNEURON")

    @run_before("run")
    def take_core(self):
        """Its library of mechanisms is compiled in the folder of the run, where nrniv finds it."""
        self.prerun_cmds = [*self.prerun_cmds, self.before("nrnivmodl -coreneuron .")]
        self.trace_loader("nrniv", "-mpi", "-c", "core=1", str(SOURCES / "neuron_ring.hoc"))


def complaints(text, ranks):
    """What is wrong with what src/neuron_ring.hoc printed."""
    rows = re.findall(r"^spike (\S+) (\d+)$", text, re.M)
    found = sorted((float(time), int(cell)) for time, cell in rows)
    wrong = [
        (time, cell)
        for number, (time, cell) in enumerate(found)
        # Events fall on steps, so that no rank's share of the work moves any of them.
        if cell != number % CELLS or abs(time - FIRST - BETWEEN * number) > STEP / 2
    ]
    core = "asked for CoreNEURON" in text and "Solver Time" not in text
    last = judging.numbers(r"^spikes (\d+) last \S+ ranks (\d+) seconds \S+$", text, 2)
    return [
        *(["CoreNEURON did not run: NEURON did instead"] if core else []),
        *judging.equal("spikes that NEURON counts, ranks", last, (SPIKES, ranks)),
        *judging.equal("spikes", len(found), SPIKES),
        *judging.equal("spikes at another time or of another cell", wrong, []),
    ]


def figures(text):
    """The time of 200 ms of the ring's life."""
    return judging.finite({"run": "s"}, [judging.number(r"^spikes .* seconds (\S+)$", text)])
