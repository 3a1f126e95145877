"""HPL's input, and the verdict on its own residual check."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import hpl  # noqa: E402

# As 2.0 printed it over MVAPICH 4.0 ch4:ofi on 2 ranks.
GOOD = """
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        3200    80     1     2               0.72              3.041e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0024076 ...... PASSED
================================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
--------------------------------------------------------------------------------
"""


def test_output_really_seen_is_right():
    assert hpl.complaints(GOOD, 2) == []
    assert hpl.figures(GOOD) == {"HPL": (30.41, "Gflop/s")}


def test_exponents_as_newer_ones_print_them_are_read():
    newer = GOOD.replace("0.0024076", "2.40761234e-03").replace("3.041e+01", "3.0413e+01")
    assert hpl.complaints(newer, 2) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"     1     2 ", "     1     1 ", "process grid"),
        (r"WR11C2R4 +3200", "WR11C2R4         120", "process grid"),
        (r"0.0024076 ...... PASSED", "17.0030191 ...... FAILED", "scaled residual is 17.0"),
        (r"0.0024076 ...... PASSED", "17.0030191 ...... PASSED", "scaled residual is 17.0"),
        (r"0.0024076", "nan", "scaled residual is nan"),
        (r"PASSED", "FAILED", "did not say PASSED"),
        (r"1 tests completed and passed", "0 tests completed and passed", "none passed"),
        (r"Finished +1", "Finished      0", "tests finished is 0"),
        (r"\|\|Ax.*", "", "scaled residual is nan"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    assert any(complaint in said for said in hpl.complaints(spoilt, 2))


@given(st.integers(1, 4096))
def test_the_input_uses_every_rank(ranks):
    lines = [line.split()[0] for line in hpl.input_file(ranks).splitlines()]
    assert int(lines[10]) * int(lines[11]) == ranks
    assert (int(lines[5]), int(lines[7])) == (hpl.SIZE, hpl.BLOCK)
    assert len(lines) == 31
