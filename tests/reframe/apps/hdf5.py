"""Parallel HDF5: what ranks wrote collectively is there, number by number and byte by byte."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

NUMBERS = 61 * 32 * 257  # of src/parallel_grid.h, 4 bytes each


@rfm.simple_test
class Hdf5(rfm.RegressionTest, AppMixin):
    """HDF5 files of many ranks, contiguous and chunked, read alike by other ranks and by none."""

    software = "HDF5"
    tags = {"app", "nightly", "hdf5"}
    ranks = parameter([1, 2, 4])
    sourcepath = "hdf5_parallel.c"
    libraries = ["libhdf5.so"]
    links = ["-lhdf5"]


def line(layout):
    """The line of a layout: ranks, numbers, wrong ones by other ranks and without MPI."""
    return (
        rf"^{layout} by (\d+) ranks: (\d+) numbers, wrong by other ranks (\d+), without MPI (\d+)"
    )


def complaints(text, ranks):
    """What is wrong with what src/hdf5_parallel.c printed."""
    found = []
    for layout in ("contiguous", "chunked"):
        said = judging.numbers(line(layout), text, 4)
        wanted = (ranks, NUMBERS, 0, 0)
        found += judging.equal(f"{layout}: ranks, numbers, wrong, wrong", said, wanted)
    plain = judging.number(r"^contiguous .*, bytes in the file (\d+);", text)
    return found + judging.equal("wrong bytes in the file itself", plain, 0)


def figures(text):
    """The rate at which the contiguous file of 2 MB was written, opening and closing in it."""
    seconds = judging.number(r"^contiguous by .*; (\S+) s$", text)
    return judging.finite({"write": "MB/s"}, [4e-6 * NUMBERS / seconds])
