"""Verdicts on what checks' own programs printed, as it was and spoilt in every way that counts."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import (  # noqa: E402
    boost_mpi,
    fftw_mpi,
    horovod,
    hypre,
    mpi4py,
    parmetis,
    petsc,
    scalapack,
)  # fmt: skip

FFTW = """fftw-3.3.10-sse2-avx, 50 planes over 4 of 4 ranks
plain: spectrum off by 1.060e-14, and back by 6.455e-15; 7.131e-02 s, 99.3 MFLOP/s
transposed: spectrum off by 1.060e-14, and back by 5.486e-15; 4.200e-02 s, 168.7 MFLOP/s
"""
HYPRE = """together 4: 15 iterations, residual 2.164697e-11, error 9.441e-11, 5.321e+00 s
alone 1: 15 iterations, residual 2.164697e-11, error 9.441e-11, 1.829e-01 s
"""
MPI4PY = """mpi4py 3.1.4, 4 ranks, 16396 numbers in the file
wrong: sums 0, objects 0, file 0, file read plainly 0
allreduce 13559.972 us
"""
SCALAPACK = """grid of 2 x 2 of 4 ranks
pdgesv 500: info 0, scaled residual  1.38455E-02, solution off by  5.50116E-14; 1.304E+00 s
pdsyev 160: info 0, eigenvalues off by  3.10862E-15
"""
HOROVOD = """ranks 4 steps 100 loss 0.0024117425 samples/s 51200.0
"""
BOOST_MPI = """ranks 4, wrong: ring 0, broadcast 0, gather 0, reduce 0, echo 0
string of 8 kB 4319.608 us
"""
PARMETIS = """ParMETIS 4.0.3 on 4 ranks, reals of 64 bits
status ok, 0 points in no part
cut 302 to 302 edges, ParMETIS says 302 to 302
parts of 3904 to 4276 points; 7.660014 s
"""
PETSC = """PETSc 3.22.5 on 4 ranks
poisson: 8 iterations, residual 7.408116e-12, solution off by 1.327e-13; 5.343373 s
newton: 4 steps, converged, solution off by 1.554e-15
heat: 10 steps, solution off by 8.213e-14
file: read back off by 0.000e+00
"""
GOOD = [
    (boost_mpi, BOOST_MPI),
    (fftw_mpi, FFTW),
    (horovod, HOROVOD),
    (hypre, HYPRE),
    (mpi4py, MPI4PY),
    (parmetis, PARMETIS),
    (petsc, PETSC),
    (scalapack, SCALAPACK),
]


def name(value: object) -> str:
    return value.__name__ if isinstance(value, ModuleType) else ""


@pytest.mark.parametrize(("app", "text"), GOOD, ids=name)
def test_output_really_seen_is_right_and_has_figures(app, text):
    assert app.complaints(text, 4) == []
    assert app.figures(text)


@pytest.mark.parametrize(("app", "text"), GOOD, ids=name)
def test_other_ranks_than_asked_for_are_refused(app, text):
    assert app.complaints(text, 2)
    assert app.complaints(text, 1)


@pytest.mark.parametrize(("app", "text"), GOOD, ids=name)
def test_output_without_any_one_of_its_lines_that_judge_is_refused(app, text):
    lines = text.splitlines()
    for left_out, line in enumerate(lines):
        if not line.startswith(("allreduce", "string")):  # a figure alone
            rest = [one for number, one in enumerate(lines) if number != left_out]
            assert app.complaints("\n".join(rest), 4), line
    assert app.complaints("", 4)


@pytest.mark.parametrize(
    ("app", "text", "pattern", "replacement", "complaint"),
    [
        (boost_mpi, BOOST_MPI, r"ring 0", "ring 1", "wrong in the ring"),
        (boost_mpi, BOOST_MPI, r"reduce 0", "reduce 2", "reductions"),
        (boost_mpi, BOOST_MPI, r"ranks 4", "ranks 1", "ranks, wrong"),
        (fftw_mpi, FFTW, r"plain: spectrum off by \S+,", "plain: spectrum off by 9.1e-08,",
         "the plain spectrum's error is 9.1e-08"),
        (fftw_mpi, FFTW, r"back by 5.486e-15", "back by nan", "the transposed way back's error"),
        (fftw_mpi, FFTW, r"over 4 of 4", "over 1 of 1", "planes, ranks that hold some"),
        (fftw_mpi, FFTW, r"over 4 of 4", "over 1 of 4", "planes, ranks that hold some"),
        (fftw_mpi, FFTW, r"50 planes", "200 planes", "planes, ranks that hold some"),
        (horovod, HOROVOD, r"ranks 4", "ranks 1", "ranks is 1.0, expected 4"),
        (horovod, HOROVOD, r"steps 100", "steps 10", "ranks is nan"),
        (horovod, HOROVOD, r"loss \S+", "loss 0.0024117475", "loss is 0.0024117475"),
        (horovod, HOROVOD, r"loss \S+", "loss nan", "loss is nan"),
        (hypre, HYPRE, r"together 4: 15 .*", "together 4: 60 iterations, residual 8.1e-07, error "
         "1.2e-05, 2e-01 s", "residual is 8.1e-07"),
        (hypre, HYPRE, r"alone 1: 15", "alone 1: 14", "iterations on all ranks as on one"),
        (hypre, HYPRE, r"2.164697e-11", "2.17e-11", "residual, over that on one rank"),
        (hypre, HYPRE, r"(residual) \S+,", r"\1 nan,", "residual is nan"),
        (hypre, HYPRE, r"error 9.441e-11", "error 9.441e-05", "error is 9.441e-05"),
        (hypre, HYPRE, r"error 9.441e-11", "error inf", "error is inf"),
        (hypre, HYPRE, r"15 iterations(?s:.*)15 iterations", "40 iterations, residual 2.1e-11, "
         "error 9e-11, 1 s\nalone 1: 40 iterations", "iterations is 40"),
        (mpi4py, MPI4PY, r"sums 0", "sums 1", "wrong sums"),
        (mpi4py, MPI4PY, r"objects 0", "objects 2", "wrong sums, objects"),
        (mpi4py, MPI4PY, r"file 0,", "file 7,", "wrong sums, objects, numbers by MPI-IO"),
        (mpi4py, MPI4PY, r"plainly 0", "plainly 12297", "plainly"),
        (mpi4py, MPI4PY, r"16396", "4099", "ranks, numbers in the file"),
        (parmetis, PARMETIS, r"cut 302 to 302", "cut 302 to 304", "cut, counted on all ranks"),
        (parmetis, PARMETIS, r"says 302", "says 290", "cut that ParMETIS says"),
        (parmetis, PARMETIS, r"302 to 302 edges, ParMETIS says 302 to 302", "24012 to 24012 edges, "
         "ParMETIS says 24012 to 24012", "cut is 24012"),
        (parmetis, PARMETIS, r"bits", "bytes", "bits of reals is nan"),
        (parmetis, PARMETIS, r"64 bits", "32 bits", "bits of reals is 32"),
        (parmetis, PARMETIS, r"0 points in no", "3 points in no", "not every point is in a part"),
        (parmetis, PARMETIS, r"status ok", "status failed", "not every point is in a part"),
        (parmetis, PARMETIS, r"4276", "16384", "largest part is 16384"),
        (parmetis, PARMETIS, r"3904", "0", "smallest part is 0"),
        (petsc, PETSC, r"8 iterations", "190 iterations", "iterations is 190"),
        (petsc, PETSC, r"residual \S+,", "residual 3.1e-07,", "residual is 3.1e-07"),
        (petsc, PETSC, r"1.327e-13", "1.327e-05", "error of the solution is 1.327e-05"),
        (petsc, PETSC, r"converged", "DIVERGED_LINE_SEARCH", "Newton's steps is nan"),
        (petsc, PETSC, r"newton: 4", "newton: 20", "Newton's steps is 20"),
        (petsc, PETSC, r"1.554e-15", "nan", "error of Newton's solution is nan"),
        (petsc, PETSC, r"heat: 10", "heat: 11", "steps in time"),
        (petsc, PETSC, r"8.213e-14", "8.213e-05", "error of the heat equation is 8.213e-05"),
        (petsc, PETSC, r"back off by \S+", "back off by 1e-16", "what HDF5 gave back differs by"),
        (scalapack, SCALAPACK, r"residual  \S+,", "residual  1.4E+01,", "scaled residual is 14"),
        (scalapack, SCALAPACK, r"solution off by  \S+;", "solution off by  NaN;", "is nan"),
        (scalapack, SCALAPACK, r"solution off by  \S+;", "solution off by  2.1E-05;", "2.1e-05"),
        (scalapack, SCALAPACK, r"500: info 0", "500: info 3", "info of pdgesv"),
        (scalapack, SCALAPACK, r"160: info 0", "160: info 1", "info of pdgesv, of pdsyev"),
        (scalapack, SCALAPACK, r"eigenvalues off by +\S+", "eigenvalues off by 1.1E-06", "eigenv"),
        (scalapack, SCALAPACK, r"grid of 2 x 2", "grid of 1 x 4", "grid is"),
    ],
    ids=lambda value: name(value) or None if isinstance(value, ModuleType) else "",
)  # fmt: skip
def test_each_wrong_result_is_refused(app, text, pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, text, count=1)
    assert count == 1
    found = app.complaints(spoilt, 4)
    assert any(complaint in said for said in found), found
