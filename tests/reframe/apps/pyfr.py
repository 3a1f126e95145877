"""PyFR: a vortex of Euler's equations is carried along unchanged, and nothing is lost of it."""

import math

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import SOURCES, AppMixin

CELLS, EDGE = 12, 20.0  # of the mesh of src/pyfr_mesh.py, and of src/pyfr_vortex.ini's square
END = 2.0
# Root mean square of the density's error there, of 1.15.0 on one rank, with this mesh and order.
ERROR = 3.48816329480e-4


@rfm.simple_test
class Pyfr(rfm.RunOnlyRegressionTest, AppMixin):
    """Mass and energy of the vortex are kept, and its error is the same on any parts of a mesh."""

    software = "PyFR"
    tags = {"app", "nightly", "pyfr"}
    ranks = parameter([1, 2, 4])
    results = ["integrals.csv"]

    @run_before("run")
    def prepare(self):
        mesh = ["-b", "openmp", "square.pyfrm", str(SOURCES / "pyfr_vortex.ini")]
        self.prerun_cmds = [
            *self.prerun_cmds,
            f"python3 {SOURCES / 'pyfr_mesh.py'} {CELLS} > square.msh",
            self.before("pyfr import square.msh square.pyfrm"),
        ]
        if self.ranks > 1:
            self.prerun_cmds += [self.before(f"pyfr partition {self.ranks} square.pyfrm .")]
        self.trace_loader("pyfr", "run", *mesh)
        # PyFR prints no time; it stands in what it wrote.
        time = "grep -a -o 'wall-time = [0-9.e+-]*' vortex-2.0.pyfrs"
        self.postrun_cmds = [time, *self.postrun_cmds]


def complaints(text, ranks):
    """What is wrong with the integrals over the square that PyFR wrote, row by row of its time."""
    row = r"^({}),([^,\s]+),([^,\s]+),([^,\s]+)$"
    _, mass, energy, _ = judging.numbers(row.format(r"0(?:\.0*)?"), text, 4)
    end, mass_then, energy_then, error = judging.numbers(row.format(r"[^,\s]+"), text, 4)
    return [
        *judging.near("time of the last row", end, END, 1e-9),
        # What flows out of a cell flows into the next: only rounding is lost, in 200 steps.
        *judging.near("mass, over that at the start", mass_then / mass, 1, 1e-11),
        *judging.near("energy, over that at the start", energy_then / energy, 1, 1e-11),
        # No number depends on the ranks but by the order of sums.
        *judging.near("error of the density", math.sqrt(error) / EDGE, ERROR, 1e-9),
    ]


def figures(text):
    """The time of two units of the vortex's life, by PyFR's own clock."""
    return judging.finite({"run": "s"}, [judging.number(r"wall-time = (\S+)", text)])
