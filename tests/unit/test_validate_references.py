"""References: which figure is judged, and by what."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mvstack.model.load import load_system
from mvstack.report.told import said_of, sayings
from mvstack.support.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import references  # noqa: E402
from planned_launcher import PlannedLauncher  # noqa: E402

ROW = """
- partition: cpu
  mpi: mvapich/4.1-ucx
  figure: latency
  size: 8
  value: 1.2
  unit: us
  below: null
  above: 0.15
  source: a run of ours
"""


def test_a_row_judges_its_own_figure_only(tmp_path):
    (tmp_path / "expanse.yaml").write_text(ROW)
    rows = references.load("expanse", tmp_path)
    ask = ("cpu", "mvapich/4.1-ucx", "latency", 8, "us")
    assert references.reference(rows, *ask) == (1.2, None, 0.15, "us")
    for place, other in enumerate(("gpu", "mvapich/4.0-ucx", "bandwidth", 16, "MB/s")):
        changed = (*ask[:place], other, *ask[place + 1 :])
        assert references.reference(rows, *changed) is None


def test_the_lower_bound_is_negative_for_reframe(tmp_path):
    (tmp_path / "x.yaml").write_text(ROW.replace("below: null", "below: 0.2"))
    rows = references.load("x", tmp_path)
    found = references.reference(rows, "cpu", "mvapich/4.1-ucx", "latency", 8, "us")
    assert found == (1.2, -0.2, 0.15, "us")


def test_a_system_without_a_file_is_recorded_and_not_judged(tmp_path):
    assert references.load("nowhere", tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("figure:", "figur:", "unknown fields ['figur']"),
        ("  unit: us\n", "", "['unit']"),
        ("1.2", "1e-6", "value is '1e-6', which is no number"),
        ("null", "none", "below is 'none'"),
    ],
)
def test_a_wrong_row_is_an_error_that_names_it(tmp_path, old, new, said):
    (tmp_path / "x.yaml").write_text(ROW.replace(old, new))
    with pytest.raises(ValueError) as error:
        references.load("x", tmp_path)
    assert "x.yaml: row 1" in str(error.value) and said in str(error.value)


def test_the_references_that_ship_can_be_read():
    for path in references.FOLDER.glob("*.yaml"):
        references.load(path.stem)
        assert sayings(path)


def test_what_others_say_judges_nothing(tmp_path):
    (tmp_path / "x.yaml").write_text(f"{ROW}\n- {{kind: chart, partition: cpu}}\n")
    assert [row["value"] for row in references.load("x", tmp_path)] == [1.2]


def test_every_figure_of_the_talks_is_there():
    kept = [row for path in references.FOLDER.glob("*.yaml") for row in sayings(path)]
    count = dict.fromkeys(("measured", "specification", "chart"), 0)
    for row in kept:
        count[row.kind] += len(row.figures) if row.kind != "chart" else 1
    assert count == {"measured": 119, "specification": 8, "chart": 27}
    for path in references.FOLDER.glob("*.yaml"):
        system = load_system(path.stem)
        described = {*system.partitions, *system.not_offered}
        assert {row.partition for row in sayings(path)} <= described, path.stem


def test_what_others_say_stands_beside_a_partitions_own_figures():
    told = {one.what: one.why for one in said_of("slingshot-test", "cpu")}
    assert told["osu bw peak bandwidth"] == (
        "23,985 MB/s, measured, MVAPICH 3.0a (nodes 2), seed talk 2"
    )
    charts = [one.why for one in said_of("alps", "cpu")]
    assert charts and all(why.startswith("without numbers, chart, ") for why in charts)
    assert said_of("nowhere", "cpu") == ()


def test_a_wrong_saying_is_told_with_its_line(tmp_path):
    (tmp_path / "x.yaml").write_text("- {kind: guess, partition: cpu, benchmark: b, source: s}\n")
    with pytest.raises(InvalidInput) as error:
        sayings(tmp_path / "x.yaml")
    assert "x.yaml:1" in error.value.problems[0].where


class Job:
    num_tasks = 8
    num_tasks_per_node = 4


def test_launch_line():
    line = "srun --mpi=pmi2 -N {nodes} --ntasks-per-node={ranks_per_node} -n {ranks} {program}"
    words = PlannedLauncher(line).command(Job())
    assert words == ["srun", "--mpi=pmi2", "-N", "2", "--ntasks-per-node=4", "-n", "8"]


def test_a_launch_line_that_does_not_end_in_the_program_is_refused():
    with pytest.raises(ValueError, match="does not end in"):
        PlannedLauncher("mpiexec {program} -n {ranks}")
