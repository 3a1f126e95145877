"""The verdict on ABINIT: what it wrote of silicon on four ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import abinit  # noqa: E402

# Written by 10.0.7 on four ranks, shortened.
TEXT = """-   mpi_nproc: 4, omp_nthreads: 1 (-1 if OMP is not activated)
 At SCF step    9, etot is converged :
- Proc.   0 individual time (sec): cpu=          2.5  wall=          6.6
 Calculation completed.
data:

 etotal = -7.8675518471725567 ;

 cartesian_forces =
  0.012148911320170066, 0.012148911315451354, 0.012148911319931425,
  -0.012148911320170066, -0.012148911315451354, -0.012148911319931425 ;

 cartesian_stress_tensor = 6.9068626610193241e-06, 6.9068627073832784e-06,
    6.9068627654878412e-06, 5.2403317506211257e-05, 5.24033177675551e-05,
    5.2403317565797599e-05 ;
}
"""


def test_output_really_seen_is_right():
    assert abinit.complaints(TEXT, 4) == []
    assert abinit.figures(TEXT) == {"run": (6.6, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        ("nproc: 4", "nproc: 1", "processes is 1.0, expected 4"),
        ("is converged", "is not converged", "the SCF did not converge"),
        (" Calculation completed.", "", "ABINIT did not come to its end"),
        ("-7.86755184", "-7.86755194", "total energy is -7.86755194"),
        (" etotal = .*", "", "values in the netCDF file is [0, 6, 6]"),
        ("-7.8675518471725567", "NaN", "total energy is nan"),
        ("0.01214891131545", "0.01214991131545", "force along y is 0.01214991"),
        ("-0.0121489113199", "-0.0121489112199", "force along z, of both atoms"),
        ("6.9068627073", "6.9168627073", "stress yy is 6.91"),
        ("5.24033175657", "5.25033175657", "stress xy is 5.25"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, TEXT, count=1)
    assert count == 1
    assert any(complaint in said for said in abinit.complaints(spoilt, 4))
