"""CloverLeaf: an explosion whose kinetic energy is known, with all of its mass still there."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

# Dense hot gas in a corner of thin cold gas. This grid, state and number of steps are those for
# which CloverLeaf carries a kinetic energy (InputDecks/clover_bm_short.in, field_summary.f90).
PROBLEM, STEPS, CELLS = 2, 87, 960
KINETIC = 1.19316898756307
VOLUME, MASS, ENERGY = 10.0 * 10.0, 0.2 * 90 + 1.0 * 10, 0.2 * 90 * 1.0 + 1.0 * 10 * 2.5
INPUT = f"""*clover
 state 1 density=0.2 energy=1.0
 state 2 density=1.0 energy=2.5 geometry=rectangle xmin=0.0 xmax=5.0 ymin=0.0 ymax=2.0
 x_cells={CELLS}
 y_cells={CELLS}
 xmin=0.0
 ymin=0.0
 xmax=10.0
 ymax=10.0
 initial_timestep=0.04
 timestep_rise=1.5
 max_timestep=0.04
 end_step={STEPS}
 test_problem {PROBLEM}
*endclover
"""
# volume, mass, density, pressure, internal, kinetic and total energy, with four figures each
SUMMARY = r"^ step: +{}" + r" +(\S+)" * 7 + "$"
QUALITY = rf"^Test problem +{PROBLEM} is within +(\S+)% of the expected solution$"
CLOCK = r"^ *Wall clock +(\S+) *$"


@rfm.simple_test
class Cloverleaf(rfm.RunOnlyRegressionTest, AppMixin):
    """A shock through 960 x 960 cells has the known kinetic energy and loses no mass."""

    software = "CloverLeaf"
    tags = {"app", "nightly", "cloverleaf"}
    ranks = parameter([1, 2, 4])
    results = ["clover.out"]

    @run_before("run")
    def prepare(self):
        self.write_input("clover.in", INPUT)
        self.trace_loader("clover_leaf")


def complaints(text, ranks):
    """What is wrong with what CloverLeaf wrote to clover.out."""
    tasks = judging.number(r"^ *Task Count +(\d+) *$", text)
    found = judging.equal("ranks", tasks, ranks)
    for step in (0, STEPS):
        row = judging.numbers(SUMMARY.format(step), text, 7)
        # Four figures are printed: nothing flows out, and the energies that the scheme moves from
        # one kind to the other add up to 0.1 %.
        found += judging.near(f"volume at step {step}", row[0], VOLUME, 5e-4 * VOLUME)
        found += judging.near(f"mass at step {step}", row[1], MASS, 5e-4 * MASS)
        found += judging.near(f"energy at step {step}", row[6], ENERGY, 1e-3 * ENERGY)
    kinetic = judging.numbers(SUMMARY.format(STEPS), text, 7)[5]
    found += judging.near("kinetic energy", kinetic, KINETIC, 5e-4 * KINETIC)
    # Its own threshold is 0.001 %; rounding in another order changes the thirteenth figure.
    return found + judging.below("% off the kinetic energy", judging.number(QUALITY, text), 1e-8)


def figures(text):
    """The time of the steps, and the rate of it."""
    seconds = judging.number(CLOCK, text)
    rate = 1e-6 * CELLS * CELLS * STEPS / seconds
    return judging.finite({"steps": "s", "step_rate": "Mcell-step/s"}, (seconds, rate))
