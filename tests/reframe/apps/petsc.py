"""PETSc: linear, nonlinear and time-dependent problems whose discrete answers are known."""

import math

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

N = 96  # of src/petsc_solve.c
POISSON = r"^poisson: (\d+) iterations, residual (\S+), solution off by (\S+); (\S+) s$"
# The least eigenvalue of the five-point Laplacian on N x N points: 2 pi^2, nearly.
LEAST = 8 * (N + 1) ** 2 * math.sin(math.pi / (2 * (N + 1))) ** 2


@rfm.simple_test
class PETSc(rfm.RegressionTest, AppMixin):
    """hypre's and PETSc's multigrid, Newton, Crank and Nicolson, and HDF5, alike on all ranks."""

    software = "PETSc"
    tags = {"app", "nightly", "petsc"}
    ranks = parameter([1, 2, 4])
    sourcepath = "petsc_solve.c"
    libraries = ["libpetsc.so"]
    links = ["-lpetsc", "-lm"]


def complaints(text, ranks):
    """What is wrong with what src/petsc_solve.c printed."""
    size = judging.number(r"^PETSc \S+ on (\d+) ranks$", text)
    iterations, residual, off_by, _ = judging.numbers(POISSON, text, 4)
    steps, newton_off_by = judging.numbers(
        r"^newton: (\d+) steps, converged, solution off by (\S+)$", text, 2
    )
    heat_steps, heat_off_by = judging.numbers(
        r"^heat: (\d+) steps, solution off by (\S+)$", text, 2
    )
    read_back = judging.number(r"^file: read back off by (\S+)$", text)
    # |f| of -Lu = f in the 2-norm over all points: at most 16 at each of them
    whole = 16 * N
    return [
        *judging.equal("ranks", size, ranks),
        # Multigrid's promise; without it conjugate gradients take some 200 here.
        *judging.below("iterations", iterations, 30),
        *judging.below("residual", residual, 1.1e-11),
        # |error| <= |residual| / least eigenvalue
        *judging.below("error of the solution", off_by, 1.1e-11 * whole / LEAST),
        # From zero, with u^3 as large as 1 beside -Lu of 16: it squares what is left each time.
        *judging.below("Newton's steps", steps, 8),
        # the norm is to fall by 1e-11, u^3 only adds to the eigenvalues
        *judging.below("error of Newton's solution", newton_off_by, 1.1e-11 * 1.1 * whole / LEAST),
        *judging.equal("steps in time", heat_steps, 10),
        # each step's system is solved to 1e-12 of what is of order 1
        *judging.below("error of the heat equation", heat_off_by, 10 * 10 * 1e-12 * N),
        *judging.equal("what HDF5 gave back differs by", read_back, 0),
    ]


def figures(text):
    """The time of one Poisson solve, hypre's setup with it."""
    return judging.finite({"poisson": "s"}, judging.numbers(POISSON, text, 4)[3:])
