"""The verdict on files that ranks wrote through HDF5, netCDF and PnetCDF."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import hdf5, netcdf, pnetcdf  # noqa: E402

HDF5 = """contiguous by 4 ranks: 501664 numbers, wrong by other ranks 0, without MPI 0, bytes in the file 0; 0.4483 s
chunked by 4 ranks: 501664 numbers, wrong by other ranks 0, without MPI 0; 0.8122 s
"""  # noqa: E501
PNETCDF = """PnetCDF by 4 ranks: 501664 numbers, wrong by other ranks 0, bytes in the file 0; 0.1 s
"""
NETCDF = """netcdf4 by 4 ranks: 501664 numbers, wrong by other ranks 0, without MPI 0; 0.4 s
cdf5 by 4 ranks: 501664 numbers, wrong by other ranks 0, without MPI 0; 0.8 s
"""
GOOD = [(hdf5, HDF5), (pnetcdf, PNETCDF), (netcdf, NETCDF)]
IDS = ["hdf5", "pnetcdf", "netcdf"]


@pytest.mark.parametrize(("app", "text"), GOOD, ids=IDS)
def test_what_is_right_has_figures(app, text):
    assert app.complaints(text, 4) == []
    figures = app.figures(text)
    assert figures and all(0 < value < 1e5 and unit == "MB/s" for value, unit in figures.values())


@pytest.mark.parametrize(("app", "text"), GOOD, ids=IDS)
def test_every_number_counts(app, text):
    counts = list(re.finditer(r"\b(wrong by other ranks|without MPI|in the file) 0", text))
    assert len(counts) >= 2
    for found in counts:
        assert app.complaints(text[: found.end() - 1] + "1" + text[found.end() :], 4)
    for found in re.finditer("501664", text):
        assert app.complaints(text[: found.start()] + "125416" + text[found.end() :], 4)
    for line in text.splitlines(keepends=True):
        assert app.complaints(text.replace(line, ""), 4)
    assert app.complaints(text, 1)
    assert app.complaints(text.replace("by 4", "by 1"), 4)


@pytest.mark.parametrize(("app", "text"), GOOD, ids=IDS)
def test_a_call_that_failed_is_no_answer(app, text):
    assert app.complaints("H5Dwrite failed\n", 4)
