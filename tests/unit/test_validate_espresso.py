"""The verdict on pw.x: the energy of silicon with either pseudopotential."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import espresso  # noqa: E402

# Printed by 6.7 on two ranks, shortened.
BHS = """
     Parallel version (MPI & OpenMP), running on       2 processor cores
     Number of MPI processes:                 2
     PseudoPot. # 1 for Si read from file:
     ./Si.bhs
     total energy              =     -15.83976498 Ry
!    total energy              =     -15.83976498 Ry
     estimated scf accuracy    <          6.1E-13 Ry
     convergence has been achieved in   8 iterations
          total   stress  (Ry/bohr**3)                   (kbar)     P=      -54.02
     PWSCF        :      2.46s CPU      6.07s WALL
   JOB DONE.
"""
GTH = BHS.replace("bhs", "gth").replace("15.83976498", "15.78614279").replace("54.02", "61.92")


@pytest.mark.parametrize("text", [BHS, GTH])
def test_output_really_seen_is_right(text):
    assert espresso.complaints(text, 2) == []
    assert espresso.figures(text) == {"wall": (6.07, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"(!.*)-15.83976498", r"\1-15.83976708", "total energy is -15.83976708"),
        (r"(!.*)-15.83976498", r"\1-15.79449593", "energy is -15.79449593, expected -15.83976536"),
        (r"(!.*)-15.83976498", r"\1************", "total energy is nan"),
        (r"!.*\n", "", "total energy is nan"),
        (r"P= +\S+", "P=      -53.90", "pressure is -53.9"),
        (r"on +2 proc", "on       1 proc", "processes is 1.0, expected 2"),
        (r".*convergence.*", "convergence NOT achieved", "did not converge"),
        (r".*JOB DONE.*", "", "did not come to its end"),
        (r"./Si.bhs", "./Si.pz-vbc.UPF", "neither pseudopotential"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, BHS, count=1)
    assert count == 1
    assert any(complaint in said for said in espresso.complaints(spoilt, 2))


def test_the_input_asks_for_what_the_other_pseudopotential_is_put_in_place_of():
    assert espresso.INPUT.count("Si.gth") == 1
    # the sum of charges that bind: 4 electrons
    assert espresso.GTH.splitlines()[1].split()[:2] == ["14", "4"]
