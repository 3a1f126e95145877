"""References: which figure is judged, and by what."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
        assert references.load(path.stem)


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
