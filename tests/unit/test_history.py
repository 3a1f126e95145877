"""Figures held against the machine's own earlier runs: what counts as slower, and what does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.test.history import ENOUGH, earlier_runs, slower

QUIET = [0.30, 0.31, 0.30, 0.32, 0.31]
BUSY = [0.3, 2.1, 0.9, 0.4, 1.8]


def run(value: float, unit: str = "us", **changed: Any) -> dict[str, Any]:
    figure = {"name": "latency", "size": 8, "value": value, "unit": unit, "reference": None}
    case = {"check": "Benchmark latency", "mpi": "mvapich/4.1-ucx", "result": "pass"}
    own = {name: changed.pop(name) for name in list(changed) if name in figure}
    return {"cases": [{**case, "benchmark": "OSU 7.5", **changed, "figures": [{**figure, **own}]}]}


@pytest.mark.parametrize(
    ("now", "past", "unit", "worse"),
    [
        (0.40, QUIET, "us", True),  # 25 % beyond the worst
        (0.34, QUIET, "us", False),  # within the margin
        (0.20, QUIET, "us", False),  # better
        (0.40, QUIET[:4], "us", False),  # too few to tell
        (0.40, BUSY, "us", False),
        (13.0, BUSY, "us", False),  # these differ sevenfold among themselves
        (15.0, BUSY, "us", True),
        (8_000, [10_000, 10_100, 9_900, 10_050, 9_950], "MB/s", True),
        (9_200, [10_000, 10_100, 9_900, 10_050, 9_950], "MB/s", False),
        (13_000, [10_000, 10_100, 9_900, 10_050, 9_950], "MB/s", False),
        (80.0, [100.0, 101.0, 99.0, 100.5, 99.5], "ns/day", True),
    ],
)
def test_what_is_worse_than_all_before(
    now: float, past: list[float], unit: str, worse: bool
) -> None:
    assert bool(slower(run(now, unit), [run(one, unit) for one in past])) == worse


def test_it_says_which_and_how_much() -> None:
    (row,) = slower(run(13.2), [run(one) for one in QUIET])
    assert row["what"] == "Benchmark latency with mvapich/4.1-ucx"
    assert row["why"] == "latency of 8 bytes is 13.2 us; 5 earlier runs had 0.3 to 0.32 us"


@pytest.mark.parametrize(
    "other",
    [
        {"reference": 1.0},  # that judges it
        {"result": "fail"},
        {"mpi": "mvapich/4.1-ofi"},  # another device
        {"mpi": "mpich/4.1-ucx"},
        {"benchmark": "IMB-MPI1"},
        {"size": 16},
        {"check": "Benchmark allreduce"},
    ],
)
def test_only_like_is_compared_with_like(other: dict[str, Any]) -> None:
    past = [run(one) for one in QUIET]
    assert not slower(run(9.0, **other), past)
    if other != {"reference": 1.0}:
        assert not slower(run(9.0), [run(one, **other) for one in QUIET])


def test_another_version_of_the_same_device_is_like() -> None:
    past = [run(one, mpi="mvapich/4.0-ucx") for one in QUIET]
    assert slower(run(0.5), past)
    assert slower(run(0.5, mpi="mvapich/4.2rc1-ucx"), past)


values = st.floats(1e-3, 1e6)


@given(st.lists(values, min_size=ENOUGH, max_size=20), st.sampled_from(["us", "MB/s"]))
def test_no_value_that_was_there_before_is_slower(past: list[float], unit: str) -> None:
    runs = [run(one, unit) for one in past]
    assert not any(slower(run(one, unit), runs) for one in past)


@given(st.lists(values, min_size=ENOUGH, max_size=20), st.sampled_from(["us", "MB/s"]))
def test_what_is_far_beyond_the_worst_always_is(past: list[float], unit: str) -> None:
    spread = 1.2 * max(past) / min(past)
    now = max(past) * spread if unit == "us" else min(past) / spread
    assert slower(run(now, unit), [run(one, unit) for one in past])


def test_runs_of_every_release_are_read_and_damaged_files_left_out(tmp_path: Path) -> None:
    for release in ("2026.05", "2026.11"):
        for partition in ("local", "expanse-cpu"):
            folder = tmp_path / release / partition / "records" / "results"
            folder.mkdir(parents=True)
            (folder / "a.json").write_text(json.dumps(run(0.3)))
    (folder / "b.json").write_text("{")
    (folder / "c.json").write_text("[]")
    (folder / "d.json").write_text('{"cases": [5]}')
    (folder / "e.json").write_text('{"cases": [{"result": "pass"}]}')
    assert len(earlier_runs(tmp_path / "2026.11" / "local")) == 2
    assert len(earlier_runs(tmp_path / "2026.11" / "expanse-cpu")) == 2
    assert earlier_runs(tmp_path / "2026.11" / "none") == []
