"""hypre: a Laplace problem by conjugate gradients and BoomerAMG, on all ranks as on one."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

LINE = r"^{} (\d+): (\d+) iterations, residual (\S+), error (\S+), (\S+) s$"


@rfm.simple_test
class Hypre(rfm.RegressionTest, AppMixin):
    """BoomerAMG-preconditioned CG finds the given solution, alike on any number of ranks."""

    software = "Hypre"
    tags = {"app", "nightly", "hypre"}
    ranks = parameter([1, 2, 4])
    sourcepath = "hypre_laplace.c"
    links = ["-lHYPRE", "$BLAS", "-lm"]


def complaints(text, ranks):
    """What is wrong with what src/hypre_laplace.c printed."""
    size, steps, residual, error, _ = judging.numbers(LINE.format("together"), text, 5)
    _, steps_alone, residual_alone, error_alone, _ = judging.numbers(LINE.format("alone"), text, 5)
    return [
        *judging.equal("ranks", size, ranks),
        # Multigrid's promise; without it CG takes some 80 on 24^3 points.
        *judging.below("iterations", steps, 30),
        *judging.equal("iterations on all ranks as on one", steps, steps_alone),
        # Asked for, with room for what rounding adds to the residual that CG updates. A single
        # precision build stops at 1e-7.
        *judging.below("residual", residual, 1.1e-10),
        # The order of sums changes the residual's seventh figure.
        *judging.near("residual, over that on one rank", residual / residual_alone, 1, 1e-4),
        # |error| <= cond |residual| with a condition of 4 / (pi / 25)^2 = 253 at most, and both
        # the largest solution and right-hand side are of order 1 to 10.
        *judging.below("error", error, 253 * 1e-10 * 10),
        *judging.below("error on one rank", error_alone, 253 * 1e-10 * 10),
    ]


def figures(text):
    """The time of setup and solve."""
    seconds = judging.numbers(LINE.format("together"), text, 5)[4:]
    return judging.finite({"setup_and_solve": "s"}, seconds)
