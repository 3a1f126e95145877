"""What checks of applications say of figures, and that one that is not there is never right."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import judging  # noqa: E402

TEXT = "energy -1.5D+01 Ry\nenergy = ****\nlast 3 of 4\nlast 5 of 6\n"


def test_the_last_match_counts_and_fortran_is_read():
    assert judging.number(r"^energy (\S+) Ry$", TEXT) == -15.0
    assert judging.numbers(r"^last (\d+) of (\d+)$", TEXT, 2) == (5.0, 6.0)


def test_what_is_not_there_or_no_number_is_nan():
    assert all(map(math.isnan, judging.numbers(r"^first (\d+) of (\d+)$", TEXT, 2)))
    assert math.isnan(judging.number(r"^energy = (\S+)$", TEXT))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.2, -1.2])
def test_what_is_far_or_nan_is_refused(value):
    assert judging.near("it", value, 1.0, 0.1)
    assert judging.below("it", value, 1.0)


def test_what_is_right_is_not_complained_of():
    assert judging.near("it", 1.05, 1.0, 0.1) == []
    assert judging.below("it", 0.0, 1.0) == []
    assert judging.equal("it", (1.0, 2.0), (1, 2)) == []
    assert judging.said(r"^last", TEXT, "it does not say last") == []


def test_each_complaint_names_what_was_found():
    assert judging.near("energy", 2.0, 1.0, 0.1) == ["energy is 2.0, expected 1.0 within 0.1"]
    assert judging.below("residual", 2.0, 1.0) == ["residual is 2.0, must be below 1"]
    assert judging.equal("ranks", 1, 4) == ["ranks is 1, expected 4"]
    assert judging.said(r"^first", TEXT, "it does not say first") == ["it does not say first"]


def test_a_figure_that_was_not_printed_is_left_out():
    units = {"time": "s", "rate": "MB/s"}
    assert judging.finite(units, (1.5, math.nan)) == {"time": (1.5, "s")}
