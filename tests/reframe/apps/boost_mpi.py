"""Boost.MPI: objects of C++ travel whole, and are put together in the ranks' order."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

LINE = r"^ranks (\d+), wrong: ring (\d+), broadcast (\d+), gather (\d+), reduce (\d+), echo (\d+)$"


@rfm.simple_test
class BoostMpi(rfm.RegressionTest, AppMixin):
    """Maps of vectors and strings, of another length on each rank, are sent and combined."""

    software = "Boost.MPI"
    tags = {"app", "nightly", "boost.mpi"}
    ranks = parameter([1, 2, 4])
    sourcepath = "boost_mpi.cpp"
    libraries = ["libboost_mpi.so", "libboost_serialization.so"]
    links = ["-lboost_mpi", "-lboost_serialization"]


def complaints(text, ranks):
    """What is wrong with what src/boost_mpi.cpp printed."""
    said = judging.numbers(LINE, text, 6)
    return judging.equal(
        "ranks, wrong in the ring, broadcast, gather, reductions, echo",
        said,
        (ranks, 0, 0, 0, 0, 0),
    )


def figures(text):
    """The time of a string of 8 kB to the next rank."""
    return judging.finite({"string": "us"}, [judging.number(r"^string of 8 kB (\S+) us$", text)])
