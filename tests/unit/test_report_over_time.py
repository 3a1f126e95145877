"""Figures over time, and what changed between two releases of one root."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from mvstack.report.over_time import Course
from mvstack.report.page import render
from mvstack.report.summary import Report, as_json, gather
from mvstack.report.terminal import print_report

PART = "node"
MPI = "mvapich/4.0-ofi"


def release(
    root: Path, name: str, *runs: dict[str, float], mpi: str = MPI, unit: str = "us"
) -> Path:
    """A release of some runs, a day each; each has figures by `name`, or `name at SIZE`."""
    records = root / name / PART / "records"
    (records / "results").mkdir(parents=True)
    plan = {"system": "local", "partition": PART, "release": name, "mpi": [{"module": mpi}]}
    (records / "plan.json").write_text(json.dumps(plan))
    for day, figures in enumerate(runs, 1):
        rows = []
        for what, value in figures.items():
            figure, _, size = what.partition(" at ")
            rows.append({"name": figure, "size": int(size) if size else None, "value": value})
        case = {"check": "Osu", "mpi": mpi, "ranks": 2, "result": "pass", "benchmark": "OMB"}
        case |= {"figures": [row | {"unit": unit, "reference": None} for row in rows]}
        run = {"started": f"{name.replace('.', '-')}-{day:02}T10:00:00+00:00", "cases": [case]}
        (records / "results" / f"{day}.json").write_text(json.dumps(run))
    return records.parent


def told(data: Report) -> dict[str, Course]:
    return {one.name: one for one in data.courses}


def rows(page: str) -> dict[str, str]:
    """The rows of both sections over time, by their heads."""
    text = page.partition('id="time"')[2].partition('id="ran"')[0]
    return dict(re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', text, re.S))


def test_each_figure_has_its_values_the_oldest_first(tmp_path: Path) -> None:
    data = gather(release(tmp_path, "2026.11", *({"t at 8": x, "r": 1.0} for x in (3.0, 1.0, 2.0))))
    assert [one.value for one in told(data)["t"].values] == [3.0, 1.0, 2.0]
    assert told(data)["t"].size == 8 and told(data)["t"].since == ""
    assert as_json(data)["courses"][0]["values"][2]["value"] == 2.0
    page = render(data)
    assert 'id="since"' not in page
    row = rows(page)["t at 8 B"]
    assert "1 to 3 µs <small>of 2 runs</small>" in row and ">within<" in row


@pytest.mark.parametrize(
    ("values", "where", "line", "band"),
    [
        # 28 high, 3 from the top: the last is the highest, and the band below it half as high
        ((1.0, 2.0, 3.0), "above", "3.0,31.0 75.0,17.0 147.0,3.0", ("17.0", "14.0")),
        ((3.0, 2.0, 1.0), "below", "3.0,3.0 75.0,17.0 147.0,31.0", ("3.0", "14.0")),
        ((2.0, 2.0, 2.0), "within", "3.0,3.0 75.0,3.0 147.0,3.0", ("3.0", "1.0")),
    ],
)
def test_the_line_the_band_and_the_mark_are_where_the_values_are(
    values: tuple[float, ...], where: str, line: str, band: tuple[str, str], tmp_path: Path
) -> None:
    page = render(gather(release(tmp_path, "2026.11", *({"t": x} for x in values))))
    row = rows(page)["t"]
    assert f">{where}<" in row and f'points="{line}"' in row
    assert re.findall(r'y="([\d.]+)" height="([\d.]+)"', row) == [band]
    mark = re.findall(r'<circle r="3"( class="outside")? cx="([\d.]+)" cy="([\d.]+)"', row)
    assert mark == [
        (' class="outside"' if where != "within" else "", *line.split(" ")[-1].split(","))
    ]
    outside = "none" if where == "within" else "1"
    assert f"1 figure, {outside} outside the band" in page


def test_a_single_run_has_no_line(tmp_path: Path) -> None:
    assert 'id="time"' not in render(gather(release(tmp_path, "2026.11", {"t": 1.0})))


def test_two_releases_stand_side_by_side(tmp_path: Path) -> None:
    quiet = {"same": 1.0, "slower": 1.0, "faster": 1.0, "swings": 1.0}
    release(tmp_path, "2026.02", quiet)
    release(
        tmp_path, "2026.08", quiet | {"swings": 3.0}, quiet | {"gone": 5.0}, mpi="mvapich/3.0-ofi"
    )
    now = {"same": 1.09, "slower": 1.2, "faster": 0.8, "swings": 2.0, "new": 5.0}
    data = gather(release(tmp_path, "2026.11", now))
    found = told(data)
    assert {name: (one.since, one.beyond) for name, one in found.items()} == {
        "same": ("2026.08", ""),
        "slower": ("2026.08", "worse"),
        "faster": ("2026.08", "better"),
        "swings": ("2026.08", ""),  # one release's own runs differ threefold
        "gone": ("", ""),
        "new": ("", ""),
    }
    assert (found["swings"].ratio, found["swings"].spread) == (2.0, 3.0)
    assert len(found["same"].values) == 4  # of the three releases
    page = render(data)
    assert "What changed since 2026.08" in page
    assert "Beyond the spread: 2 figures" in page and "Within the spread: 2 figures" in page
    row = rows(page)["slower"]  # the second section's
    assert "1 µs <small>of 2 runs</small>" in row and "1.20 µs <small>of 1 run</small>" in row
    assert '<td>1.20</td><td>1.10</td><td><span class="badge fail">worse</span></td>' in row
    out = io.StringIO()
    print_report(data, Console(file=out, width=80))
    assert "What changed since 2026.08" in out.getvalue()
    assert "worse, 1.20 times: Osu OMB with mvapich-ofi: slower" in out.getvalue()


def test_of_a_rate_more_is_better(tmp_path: Path) -> None:
    release(tmp_path, "2026.08", {"bw": 100.0, "hpl": 100.0}, unit="MB/s")
    data = gather(release(tmp_path, "2026.11", {"bw": 150.0, "hpl": 50.0}, unit="MB/s"))
    assert {one.name: one.beyond for one in data.courses} == {"bw": "better", "hpl": "worse"}


def test_a_release_is_held_against_the_one_before_and_the_first_against_the_last(
    tmp_path: Path,
) -> None:
    """Who went back to the first sees what the newest has."""
    names = ("2026.02", "2026.05", "2026.08", "2026.11")
    trees = [release(tmp_path, name, {"t": 1.0}) for name in names]
    since = [told(gather(tree))["t"].since for tree in trees]
    assert since == ["2026.11", "2026.02", "2026.05", "2026.08"]


def test_what_is_no_release_of_this_partition_does_not_count(tmp_path: Path) -> None:
    tree = release(tmp_path, "2026.11", {"t": 1.0})
    (tmp_path / "current").symlink_to("2026.11")
    other = release(tmp_path, "2026.08", {"t": 2.0})
    (other / "records" / "plan.json").write_text("{")
    gone = release(tmp_path, "2026.05", {"t": 2.0})
    (gone / "records" / "results" / "1.json").write_text(
        '{"cases": [{"result": "pass", "figures": 3}]}'
    )
    data = gather(tree)
    assert len(told(data)["t"].values) == 1 and not told(data)["t"].since
    assert data.notices and all("plan.json" not in one.where for one in data.notices)


@pytest.mark.parametrize(("then", "now"), [(1e308, 5e-324), (5e-324, 1e308), (5e-324, 5e-324)])
def test_no_value_breaks_the_page(then: float, now: float, tmp_path: Path) -> None:
    release(tmp_path, "2026.08", {"t": then}, {"t": now})
    data = gather(release(tmp_path, "2026.11", {"t": now}, {"t": then}, {"t": now}))
    assert "What changed" in render(data)
    json.dumps(as_json(data))
