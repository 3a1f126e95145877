"""The verdict on LAMMPS's melt and rock salt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import lammps  # noqa: E402

# Printed by LAMMPS, shortened.
GOOD = """
Step Temp E_pair E_mol TotEng Press
       0         1.44   -6.7733681            0   -4.6134356   -5.0197073
     100    0.7574531   -5.7585055            0   -4.6223613   0.20726105
Loop time of 2.19033 on 4 procs for 100 steps with 32000 atoms
  using double precision FFTW3
Step Atoms E_coul E_long PotEng
       0      512 -0.310628720906 -0.563154171491 -0.873782892397
Loop time of 1.532e-06 on 4 procs for 0 steps with 512 atoms
"""


def test_output_really_seen_is_right():
    assert lammps.complaints(GOOD, 4) == []
    figures = lammps.figures(GOOD)
    assert figures["melt"] == (2.19033, "s")
    assert figures["melt_rate"][0] == pytest.approx(1.461, abs=1e-3)


def test_wider_columns_as_newer_ones_print_them_are_read():
    row = "         0   1.44          -6.7733681      0             -4.6134356     -5.0197073    "
    spoilt, count = re.subn(r"^ +0 +1.44.*", row, GOOD, flags=re.M)
    assert count == 1
    assert lammps.complaints(spoilt, 4) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"on 4 procs for 100", "on 1 procs for 100", "processes is 1.0, expected 4"),
        (r"(Loop time.*)32000", r"\g<1>4000", "processes is nan"),
        (r"-4.6223613", "-4.6223625", "energy at step 100 is -4.6223625"),
        (r"-5.0197073", "-5.0197099", "pressure at step 0"),
        (r"0.7574531", "0.7574541", "temperature at step 100"),
        (r"-5.7585055", "nan", "pair energy at step 100"),
        (r" +100 .*\n", "", "temperature at step 100 is nan"),
        (r"-0.563154171491", "-0.563154271491", "the mesh's part"),
        (r"-0.873782892397", "-0.873822892397", "rock salt's energy for an ion"),
        (r" +0 +512.*\n", "", "atoms of salt"),
        (r"double precision", "single precision", "not one in double precision"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    assert any(complaint in said for said in lammps.complaints(spoilt, 4))


def test_worlds_of_one_are_refused():
    assert lammps.complaints(4 * GOOD.replace("on 4 procs", "on 1 procs"), 4)
