"""HPCC's input, and its verdict on output that was captured, whole and spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import hpcc_output  # noqa: E402

GOOD = (ROOT / "data" / "validate" / "hpccoutf.txt").read_text()


def test_a_good_run_verifies_and_gives_figures():
    assert hpcc_output.complaints(GOOD, 2) == []
    values = hpcc_output.summary(GOOD)
    assert all(float(values[name]) > 0 for name in hpcc_output.FIGURES)


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"^Success=1", "Success=0", "Success is 0"),
        (r"^CommWorldProcs=2", "CommWorldProcs=1", "CommWorldProcs is 1, expected 2"),
        (r"^PTRANS_residual=.*", "PTRANS_residual=17.2", "PTRANS_residual is 17.2"),
        (r"^PTRANS_residual=.*\n", "", "PTRANS_residual is nan"),
        (r"^MPIRandomAccess_ErrorsFraction=0$", "MPIRandomAccess_ErrorsFraction=0.02", "0.02"),
        (r"^MPIRandomAccess_ErrorsFraction=0$", "MPIRandomAccess_ErrorsFraction=-1", "is -1"),
        (r"^MPIRandomAccess_LCG_ErrorsFraction=0$", "MPIRandomAccess_LCG_ErrorsFraction=1", "LCG"),
        (r"^MPIFFT_maxErr=.*", "MPIFFT_maxErr=1e-9", "MPIFFT_maxErr is 1e-9"),
        (r"^MPIFFT_maxErr=.*", "MPIFFT_maxErr=nan", "MPIFFT_maxErr is nan"),
        (r"(\|\|Ax-b.*) PASSED", r"\1 FAILED", "HPCC says: ||Ax-b||"),
        (r"1 tests completed and passed", "0 tests completed and passed", "HPL: residual checks"),
        (r"0 tests completed and failed residual checks,", "1 tests completed and failed residual "
         "checks,", "HPL: residual checks"),
        (r"5 tests completed and passed", "4 tests completed and passed", "PTRANS: residual"),
        (r"^WALL(.*) PASSED", r"WALL\1 FAILED", "HPCC says: WALL"),
        (r"Found 0 errors in (\d+) locations \(passed\)", r"Found 9 errors in \1 locations "
         r"(failed)", "HPCC says: Found 9 errors"),
        (r"^Node\(s\) with error 0", "Node(s) with error 1", "HPCC says: Node(s) with error 1"),
        (r"^Solution Validates.*", "Failed Validation on array a[]", "StarSTREAM did not validate"),
        (r"^Scaled residual: .*", "Scaled residual: 20.5", "scaled residual is 20.5"),
        (r"^Scaled residual: .*\n", "", "scaled residual is nan"),
        (r"^End of Summary(?s:.*)", "", "did not get to its end"),
    ],
)  # fmt: skip
def test_each_wrong_result_is_seen(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1, flags=re.M)
    assert count == 1
    assert any(complaint in said for said in hpcc_output.complaints(spoilt, 2))


@given(st.integers(0, len(GOOD) - 400))
def test_output_cut_short_anywhere_never_verifies(length):
    assert hpcc_output.complaints(GOOD[:length], 2)


@given(st.integers(1, 4096))
def test_the_input_uses_every_rank_and_keeps_the_work_of_each(ranks):
    lines = [line.split()[0] for line in hpcc_output.input_file(ranks).splitlines()]
    p, q, size = int(lines[10]), int(lines[11]), int(lines[5])
    assert p * q == ranks and p <= q
    assert len(lines) == 36
    assert size % hpcc_output.BLOCK == 0
    assert 0.8 < size**2 / (1400**2 * ranks) < 1.2


def test_the_same_ranks_give_the_same_bytes():
    assert hpcc_output.input_file(2) == hpcc_output.input_file(2)
