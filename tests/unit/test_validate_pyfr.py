"""The verdict on PyFR's vortex."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import pyfr  # noqa: E402

# What was said of the solution of 1.15.0 on two ranks, and its integrals.csv.
GOOD = """wall-time = 0.9738223552703857
t,int-mass,int-energy,int-error
0.0,396.27111970719847,4629.335859849366,2.0314195090107566e-06
0.5000000000000002,396.2711197071984,4629.335859849367,2.5638474045916383e-05
1.0000000000000007,396.27111970719847,4629.335859849366,4.953457195608525e-05
1.500000000000001,396.27111970719847,4629.335859849365,6.670778116978967e-05
2.0,396.2711197071984,4629.335859849366,4.866913268489777e-05
"""


def test_output_really_seen_is_right() -> None:
    assert pyfr.complaints(GOOD, 2) == []
    assert pyfr.figures(GOOD) == {"run": (0.9738223552703857, "s")}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"^2\.0,.*\n", "", "time of the last row is 1.5"),
        (r"^2\.0,396\.27111", "2.0,396.27112", "mass, over that at the start"),
        (r",4629\.335859849366,4\.8", ",4629.335860849366,4.8", "energy, over that at the start"),
        (r"4\.866913268489777e-05", "4.8679e-05", "error of the density"),
        (r"4\.866913268489777e-05", "nan", "error of the density"),
        (r"(?s).*", "", "mass, over that at the start is nan"),
    ],
)
def test_what_is_wrong_is_said(pattern: str, replacement: str, complaint: str) -> None:
    text = re.sub(pattern, replacement, GOOD, flags=re.M)
    assert complaint in "; ".join(pyfr.complaints(text, 2))
