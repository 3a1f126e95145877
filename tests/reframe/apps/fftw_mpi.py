"""FFTW over MPI: a distributed transform against its spectrum in closed form, and back."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

# Of values that src/fftw_mpi.c gives relative to their root mean square. The error of an FFT of n
# points is some eps log2 n of that, 2e-15; the largest value of the spectrum is 100 times it, and
# rounds to 1e-14 of it. In single precision the error is 1e-7 and more.
BOUND = 2e-13
LINE = r"^{}: spectrum off by (\S+), and back by (\S+); (\S+) s, (\S+) MFLOP/s$"


@rfm.simple_test
class FftwMpi(rfm.RegressionTest, AppMixin):
    """FFTW.MPI gives the closed-form spectrum of 50 x 48 x 36 points, and the points back."""

    software = "FFTW.MPI"
    tags = {"app", "nightly", "fftw"}
    ranks = parameter([1, 2, 4])
    sourcepath = "fftw_mpi.c"
    libraries = ["libfftw3_mpi.so"]
    links = ["-lfftw3_mpi", "-lfftw3", "-lm"]


def complaints(text, ranks):
    """What is wrong with what src/fftw_mpi.c printed."""
    spread = judging.numbers(r" (\d+) planes over (\d+) of (\d+) ranks$", text, 3)
    found = judging.equal("planes, ranks that hold some, ranks", spread, (50, ranks, ranks))
    for order in ("plain", "transposed"):
        there, back, *_ = judging.numbers(LINE.format(order), text, 4)
        found += judging.below(f"the {order} spectrum's error", there, BOUND)
        found += judging.below(f"the {order} way back's error", back, BOUND)
    return found


def figures(text):
    """Time and rate of the plain transform, FFTW's own convention of 5 n log2 n operations."""
    _, _, seconds, rate = judging.numbers(LINE.format("plain"), text, 4)
    return judging.finite({"forward": "s", "forward_rate": "MFLOP/s"}, (seconds, rate))
