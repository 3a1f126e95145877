"""ScaLAPACK: a linear system and eigenvalues over the ranks."""

import reframe as rfm
from reframe.core.builtins import parameter

import hpcc_output
import judging
from app_mixin import AppMixin

SIZE, HALF = 500, 160  # of src/scalapack_solve.f90
SOLVED = rf"^pdgesv {SIZE}: info (\S+), scaled residual +(\S+), solution off by +(\S+); +(\S+) s$"


@rfm.simple_test
class Scalapack(rfm.RegressionTest, AppMixin):
    """pdgesv leaves a small residual, and pdsyev finds eigenvalues known in closed form."""

    software = "ScaLAPACK"
    tags = {"app", "nightly", "scalapack"}
    ranks = parameter([1, 2, 4])
    sourcepath = "scalapack_solve.f90"
    libraries = ["libscalapack.so"]
    links = ["-lscalapack", "$BLAS"]


def complaints(text, ranks):
    """What is wrong with what src/scalapack_solve.f90 printed."""
    grid = judging.numbers(r"^grid of (\d+) x (\d+) of (\d+) ranks$", text, 3)
    info, residual, off_by, _ = judging.numbers(SOLVED, text, 4)
    info_of_values, off = judging.numbers(
        rf"^pdsyev {HALF}: info (\S+), eigenvalues off by +(\S+)$", text, 2
    )
    return [
        *judging.equal("grid", grid, (*hpcc_output.grid(ranks), ranks)),
        *judging.equal("info of pdgesv, of pdsyev", (info, info_of_values), (0, 0)),
        # ScaLAPACK's own: |Ax - b| / (|A| |x| eps n) and the threshold 1 of its TESTING/LU.dat
        *judging.below("scaled residual", residual, 1),
        # A matrix of chance of this size has a condition of thousands, seldom 1e6; times n eps.
        *judging.below("error of the solution", off_by, 1e6 * SIZE * 2.0**-53),
        # They err by a modest multiple of eps times the largest, which is 4; the multiple, of
        # order 1 in practice, is bounded by n in LAPACK's users' guide.
        *judging.below("error of the eigenvalues", off, HALF * 4 * 2.0**-53),
    ]


def figures(text):
    """The rate of pdgesv, by 2/3 n^3 operations."""
    seconds = judging.numbers(SOLVED, text, 4)[3]
    return judging.finite({"pdgesv": "Gflop/s"}, [2e-9 / 3 * SIZE**3 / seconds])
