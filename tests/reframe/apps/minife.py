"""miniFE: heat in a cube; conjugate gradients go the way that they go without ranks."""

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

ELEMENTS = 24  # along an edge
NODES = ELEMENTS + 1
# The residual's norm at the start and after steps of CG, with the tolerance. Trilinear elements on
# a cube make a sum of Kronecker products of matrices for one dimension; CG on those in NumPy, with
# no ranks, has these norms. Six figures are printed, and only at step 20, while the norm falls
# fastest, does the order of sums show in the fourth.
HISTORY = {20: (0.0114725, 1e-3), 40: (2.94886e-6, 1e-5), 60: (4.53604e-11, 1e-5)}
START = (25.0167, 1e-5)
EPSILON = 2.0**-52  # where it stops, which is CG's step 78 in NumPy


@rfm.simple_test
class Minife(rfm.RunOnlyRegressionTest, AppMixin):
    """Conjugate gradients on 25^3 unknowns converge step by step as they must."""

    software = "miniFE"
    tags = {"app", "nightly", "minife"}
    ranks = parameter([1, 2, 4])
    results = ["miniFE.*.yaml"]

    @run_before("run")
    def prepare(self):
        size = [f"n{axis}={ELEMENTS}" for axis in "xyz"]
        self.trace_loader("miniFE.x", *size, "verify_solution=1")


def complaints(text, ranks):
    """What is wrong with what miniFE printed and wrote to its YAML file."""
    found = judging.equal("ranks", _of_yaml("number of processors", text), ranks)
    found += judging.equal("unknowns", _of_yaml("Global Nrows", text), NODES**3)
    # A node has a row for itself and its neighbours: 3 in a dimension, 2 at an end.
    found += judging.equal("entries", _of_yaml("Global NNZ", text), (3 * NODES - 2) ** 3)
    start = judging.number(r"^Initial Residual = (\S+)$", text)
    found += judging.near("residual at the start, over that known", start / START[0], 1, START[1])
    for step, (known, tolerance) in HISTORY.items():
        residual = judging.number(rf"^Iteration = {step} +Residual = (\S+)$", text)
        what = f"residual at step {step}, over that known"
        found += judging.near(what, residual / known, 1, tolerance)
    found += judging.near("steps", _of_yaml("Iterations", text), 79, 3)
    residual = judging.number(r"^Final Resid Norm: (\S+)$", text)
    found += judging.below("residual at the end", residual, EPSILON)
    # Its own check, of the middle of the cube against a series.
    matches = r"^solution matches analytic solution to within \S+ or better\.$"
    return found + judging.said(matches, text, "miniFE did not say that the solution matches")


def figures(text):
    """miniFE's own figure of merit: the rate of CG."""
    rate = _of_yaml("Total CG Mflops", text)
    return judging.finite({"CG": "Mflop/s"}, [rate])


def _of_yaml(name, text):
    """A number of the file that miniFE writes, by the name before its colon."""
    return judging.number(rf"^ *{name}: (\S+) *$", text)
