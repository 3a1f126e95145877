"""`mvstack test --record`: rows of references out of a machine's kept runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from recorded import merged, record, rows_of

from mvstack.support.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parents[1] / "reframe"))

import references

MPI = "mvapich/4.0-ofi"
PLAN = {
    "system": "mine",
    "partition": "cpu",
    "cores": 64,
    "target": "zen3",
    "mpi": [{"module": MPI, "software": "MVAPICH", "version": "4.0", "device": "ch4:ofi"}],
}
HAND = """\
# Figures of mine.

- partition: cpu
  mpi: mvapich/4.0-ofi  # the module
  figure: latency
  size: 8
  value: 1.20
  unit: us
  below: null
  above: 0.15
  source: by hand

# What a talk said.
- {kind: chart, partition: cpu, benchmark: osu_bw, source: a talk}
"""


def a_run(value, figure="latency", size=8, unit="us", check="Benchmark latency"):
    row = {"name": figure, "size": size, "value": value, "unit": unit, "reference": None}
    case = {"check": check, "mpi": MPI, "result": "pass", "benchmark": "OSU", "figures": [row]}
    return {"started": "2026-11-30T01:00:00+00:00", "cases": [case]}


def runs(values, **more):
    return [a_run(value, **more) for value in values]


def of(values, **more):
    every = runs(values, **more)
    return rows_of(PLAN, every[-1], every, "1a2b3c4")


def test_a_row_says_what_it_is_and_where_it_comes_from():
    (row,), left = of([1.2, 1.22, 1.25, 1.19, 1.24, 1.21])
    assert left == []
    source = row.pop("source")
    assert {key: str(value) for key, value in row.items()} == {
        **{"partition": "cpu", "mpi": MPI, "figure": "latency", "size": "8", "value": "1.21"},
        **{"unit": "us", "below": "None", "above": "0.14"},  # 1.25 * 1.1 / 1.21
    }
    assert source == (
        "mvstack test 2026-11-30, nodes of 64 cores (zen3), MVAPICH 4.0 ch4:ofi, mvapich-stack "
        "1a2b3c4; 6 runs had 1.19 to 1.25 us: the worst, and as much more as they differ, "
        "10% at least"
    )


def test_more_is_better_of_other_units():
    ((row,), _) = of([10_000, 9_900, 9_950, 10_050, 9_800, 9_990], figure="bandwidth", unit="MB/s")
    assert (row["below"], row["above"]) == (0.11, None)  # 9,800 / 1.1 is 0.892 of 9,990


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.2] * 5, "fewer than 6 kept runs do not say how much it varies"),
        ([1.2, 1.3, 1.2, 1.1, 1.2, 2.3], "kept runs differ by more than a factor of 2"),
    ],
)
def test_what_would_say_nothing_has_no_row(values, why):
    rows, left = of(values)
    assert (rows, left) == (
        [],
        [f"no row, for {why}: Benchmark latency with {MPI}: latency of 8 bytes"],
    )


def test_a_name_that_two_checks_give_has_no_row():
    """A row has no field for a check or its ranks: it would judge both."""
    every = runs([1.2] * 6)
    for run, other in zip(every, runs([3.4] * 6, check="Other 4"), strict=True):
        run["cases"] += other["cases"]
    rows, (left,) = rows_of(PLAN, every[-1], every, "")
    assert rows == []
    assert "given by several checks, or on several numbers of ranks" in left


def test_runs_of_another_version_say_nothing():
    every = runs([1.2] * 6)
    for run in every[:2]:
        run["cases"][0]["mpi"] = "mvapich/3.0-ofi"
    assert rows_of(PLAN, every[-1], every, "")[0] == []


def test_a_row_is_replaced_where_it_stands_and_all_else_stays():
    rows, _ = of([1.2, 1.22, 1.25, 1.19, 1.24, 1.21])
    new = merged(HAND, rows, Path("mine.yaml"))
    before, after = HAND.split("- partition", 1)[0], HAND[HAND.index("\n# What a talk") :]
    assert new.startswith(before) and new.endswith(after)
    assert new.count("figure:") == 1 and "value: 1.21" in new and "by hand" not in new
    assert merged(new, rows, Path("mine.yaml")) == new
    more, _ = of([1e-6] * 6, figure="residual", size=None, unit="s")
    new = merged(HAND, more, Path("mine.yaml"))
    assert new.startswith(HAND) and "  value: 0.000001\n" in new


def test_a_file_that_cannot_be_continued_is_refused():
    rows, _ = of([1.2] * 6)
    with pytest.raises(InvalidInput):
        merged(HAND.replace("- ", "  - ").replace("\n  ", "\n    "), rows, Path("mine.yaml"))


@given(
    st.lists(st.floats(1e-7, 1e7), min_size=6, max_size=9),
    st.sampled_from(["us", "MB/s", "GB/s", "s"]),
)
def test_every_kept_run_passes_its_row_and_what_became_slower_fails(values, unit):
    """As tests/reframe/references.py reads it."""
    rows, left = of(values, unit=unit)
    assert len(rows) + len(left) == 1
    if left:
        return
    folder = Path(__file__).parent / "data"
    (read,) = references.yaml.safe_load(merged("", rows, folder / "mine.yaml"))
    assert set(read) <= references.FIELDS and isinstance(read["value"], float | int)
    value, lower, upper, _ = references.reference([read], "cpu", MPI, "latency", 8, unit)

    def passes(found):
        low = -float("inf") if lower is None else value * (1 + lower)
        return low <= found <= (float("inf") if upper is None else value * (1 + upper))

    assert all(map(passes, values)), read
    worse = max(values) * 2.6 if unit in ("us", "s") else min(values) / 4.1
    spread = max(values) / min(values)
    if spread < 1.15:
        assert not passes(worse), read


def test_the_site_s_file_is_written_and_ours_never(tmp_path, monkeypatch):
    tree = tmp_path / "2026.11" / "mine-cpu"
    kept = tree / "records" / "results"
    kept.mkdir(parents=True)
    every = runs([1.2, 1.22, 1.25, 1.19, 1.24, 1.21])
    for number, run in enumerate(every):
        (kept / f"{number}.json").write_text(json.dumps(run))
    plan = PLAN | {"tree": str(tree)}
    monkeypatch.setattr(recorded, "told", lambda *_: "1a2b3c4\n")
    said = record(plan, every[-1])
    name = "references/mine.yaml"
    assert said[:3] == [f"--- {name}", f"+++ {name}", "@@ -0,0 +1,9 @@"]
    assert said[-1] == f"nothing was written: mvstack --site DIR … writes DIR/{name}"
    site = tmp_path / "site"
    (site / "references").mkdir(parents=True)
    (site / name).write_text(HAND)
    monkeypatch.setenv("MVSTACK_SITE", str(site))
    said = record(plan, every[-1])
    assert "-  value: 1.20" in said and "+  value: 1.21" in said
    assert said[-1] == f"written: {site / name}; review it as any change"
    assert "value: 1.21" in (site / name).read_text()
    (tmp_path / "site" / name).unlink()
    assert record(plan, a_run(1.2) | {"cases": []})[-1] == "no figure has a row to write"
    assert not (site / name).exists()
