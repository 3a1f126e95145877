"""The verdict on SPH-EXA: what it printed on two ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import sph_exa  # noqa: E402

# Of 0.94, shortened, with the last rows of constants.txt.
TEXT = """Data generated for 27000 global particles
### Check ### Global Tree Nodes: 512, Particles: 13500, Halos: 7200
### Check ### Total energy: 1, (internal: 0.999989, kinetic: 1.11996e-05, gravitational: 0)
# Total execution time of 20 iterations of sedov up to t = 0.000063: 4.62809s
 19 5.01591e-05 5.55992e-06 1 8.92274e-06 0.999991 0 3.04211e-12 1.62559e-13
 20 5.6275e-05 6.11591e-06 1 1.11996e-05 0.999989 0 2.36311e-12 9.86392e-14
"""


def test_output_really_seen_is_right():
    assert sph_exa.complaints(TEXT, 2) == []
    assert sph_exa.figures(TEXT) == {"step": (pytest.approx(0.2314045), "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"for 27000", "for 26000", "it made other particles"),
        (r"Particles: 13500", "Particles: 27000", "particles of the first rank is 2"),
        (r"1.11996e-05 0", "1.12196e-05 0", "kinetic energy is 1.0017"),
        (r" 20 5.6275e-05", " 20 5.6375e-05", "time is 1.0017"),
        (r"6.11591e-06 1 ", "6.11591e-06 1.0001 ", "energy is 1.0001"),
        (r"0.999989 0 2", "0.998989 0 2", "kinetic and internal energy is 0.999"),
        (r"2.36311e-12", "2.36311e-05", "momentum is 2.36311e-05"),
        (r"9.86392e-14", "-nan", "angular momentum is nan"),
        (r" 20 5[^\n]*\n", "", "time is nan"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, TEXT, count=1)
    assert count == 1
    assert any(complaint in said for said in sph_exa.complaints(spoilt, 2))
