"""PnetCDF: what ranks wrote collectively is there, number by number and byte by byte."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

NUMBERS = 61 * 32 * 257  # of src/parallel_grid.h, 4 bytes each
LINE = (
    r"^PnetCDF by (\d+) ranks: (\d+) numbers, wrong by other ranks (\d+), "
    r"bytes in the file (\d+); (\S+) s$"
)


@rfm.simple_test
class Pnetcdf(rfm.RegressionTest, AppMixin):
    """A CDF-5 file that ranks wrote by PnetCDF, read by other ranks and as plain bytes."""

    software = "PnetCDF"
    tags = {"app", "nightly", "pnetcdf"}
    ranks = parameter([1, 2, 4])
    sourcepath = "pnetcdf_parallel.c"
    links = ["-lpnetcdf"]


def complaints(text, ranks):
    """What is wrong with what src/pnetcdf_parallel.c printed."""
    said = judging.numbers(LINE, text, 5)[:4]
    return judging.equal("ranks, numbers, wrong, wrong bytes", said, (ranks, NUMBERS, 0, 0))


def figures(text):
    """The rate at which the file of 2 MB was written, opening and closing in it."""
    seconds = judging.numbers(LINE, text, 5)[4]
    return judging.finite({"write": "MB/s"}, [4e-6 * NUMBERS / seconds])
