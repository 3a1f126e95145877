"""Parallel netCDF, from C and from Fortran, through HDF5 and through PnetCDF."""

import reframe as rfm
from reframe.core.builtins import parameter

import judging
from app_mixin import AppMixin

NUMBERS = 61 * 32 * 257  # of src/parallel_grid.h and of netcdf_parallel.f90, 4 bytes each
LINE = r"^{} by (\d+) ranks: (\d+) numbers, wrong by other ranks (\d+), without MPI (\d+); (\S+) s$"


@rfm.simple_test
class NetcdfC(rfm.RegressionTest, AppMixin):
    """netCDF-4 and CDF-5 files that ranks wrote from C, read by other ranks and without MPI."""

    software = "netCDF"
    tags = {"app", "nightly", "netcdf"}
    ranks = parameter([1, 2, 4])
    sourcepath = "netcdf_parallel.c"
    libraries = ["libnetcdf.so"]
    links = ["-lnetcdf"]


@rfm.simple_test
class NetcdfFortran(rfm.RegressionTest, AppMixin):
    """netCDF-4 and CDF-5 files that ranks wrote from Fortran, read by others and without MPI."""

    software = "netCDF-Fortran"
    tags = {"app", "nightly", "netcdf"}
    ranks = parameter([1, 2, 4])
    sourcepath = "netcdf_parallel.f90"
    libraries = ["libnetcdff.so", "libnetcdf.so"]
    links = ["-lnetcdff", "-lnetcdf"]


def complaints(text, ranks):
    """What is wrong with what src/netcdf_parallel.c or .f90 printed."""
    found = []
    for layout in ("netcdf4", "cdf5"):
        said = judging.numbers(LINE.format(layout), text, 5)[:4]
        wanted = (ranks, NUMBERS, 0, 0)
        found += judging.equal(f"{layout}: ranks, numbers, wrong, wrong", said, wanted)
    return found


def figures(text):
    """The rates at which the files of 2 MB were written, opening and closing in it."""
    rates = [
        4e-6 * NUMBERS / judging.numbers(LINE.format(layout), text, 5)[4]
        for layout in ("netcdf4", "cdf5")
    ]
    return judging.finite({"write_netcdf4": "MB/s", "write_cdf5": "MB/s"}, rates)
