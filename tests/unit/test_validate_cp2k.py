"""The verdict on CP2K: what it printed of water on two ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import cp2k  # noqa: E402

# Printed by 2025.2 on two ranks, shortened.
TEXT = """ GLOBAL| Total number of message passing processes                             2
  *** SCF run converged in    14 steps ***
  Electronic density on regular grids:         -7.9999999799        0.0000000201
  Hartree-Fock Exchange energy:                                -0.98155108455381
 ENERGY| Total FORCE_EVAL ( QS ) energy [hartree]            -17.212582475860795
 FORCES|   Atom     x               y               z               |f|
 FORCES|      1  1.10812469E-08  1.56720612E-08  5.05698282E-03   5.05698282E-03
 FORCES|      2 -4.91598148E-09  2.27891730E-03 -1.00189412E-03   2.48942883E-03
 FORCES|      3 -5.44003066E-09 -2.27893558E-03 -1.00189346E-03   2.48944529E-03
 FORCES| Sum     7.25234754E-10 -2.60265941E-09  3.05319523E-03
 CP2K                                 1  1.0    0.015    0.019   10.014   10.016
  **** **** ******  **  PROGRAM ENDED AT                 2026-11-26 05:43:34.656
"""


def test_output_really_seen_is_right():
    assert cp2k.complaints(TEXT, 2) == []
    assert cp2k.figures(TEXT) == {"run": (10.016, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"processes +2", "processes       1", "processes is 1.0, expected 2"),
        (r"\*\*\* SCF run converged", "SCF run NOT converged", "the SCF did not converge"),
        (r".*ENDED AT.*", "", "CP2K did not come to its end"),
        (r"-17.2125824758", "-17.2125834758", "total energy is -17.212583"),
        (r"-17.212582475860795", "****", "total energy is nan"),
        (r"-0.98155108", "-0.98155208", "exact exchange is -0.98155208"),
        (r"-7.9999999799", "-7.9999799799", "electrons is 7.99997"),
        (r".*FORCES\|      2.*\n", "", "atoms with a force is 2"),
        (r" 1.10812469E-08", " 1.10812469E-05", "force out of the plane"),
        (r"-2.27893558E-03", "-2.27993558E-03", "force across, of all atoms"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, TEXT, count=1)
    assert count == 1
    assert any(complaint in said for said in cp2k.complaints(spoilt, 2))
