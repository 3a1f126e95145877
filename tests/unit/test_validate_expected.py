"""The list of checks that is read from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.support.errors import InvalidInput
from mvstack.test.expected import expected_checks

CHECKS = Path(__file__).resolve().parents[1] / "reframe"


def names(folder: Path, *tags: str) -> list[str]:
    return sorted(
        " ".join([check.name, *(value for _, value in sorted(check.values))])
        for check in expected_checks(folder, list(tags))
    )


def test_every_check_that_ships_says_what_it_is_and_when_it_runs():
    found = expected_checks(CHECKS, [])
    assert found
    for check in found:
        assert check.description and check.tags & {"smoke", "nightly"}, check
        if check.software in ("HPCC", "IMB"):
            continue  # benchmarks, on any number of ranks
        assert bool(check.software) == ("app" in check.tags), check
        # a parameter of the class that it is made from is not seen: it is written in both
        assert check.values or not check.software, check


def write(folder: Path, text: str) -> Path:
    (folder / "some.py").write_text(text)
    return folder


def test_parameters_multiply(tmp_path):
    text = (
        "@rfm.simple_test\nclass A(Base):\n    x = parameter([1, 2])\n    y = parameter(['a', 'b'])"
        "\n    tags = {'t'}\n\nclass Helper(Base):\n    tags = {'t'}\n"
    )
    assert names(write(tmp_path, text)) == ["A 1 a", "A 1 b", "A 2 a", "A 2 b"]
    assert names(tmp_path, "other") == []


@pytest.mark.parametrize("line", ["x = parameter(range(3))", "tags = TAGS"])
def test_what_cannot_be_read_is_an_error_with_its_line(tmp_path, line):
    folder = write(tmp_path, f"@simple_test\nclass A(Base):\n    {line}\n")
    with pytest.raises(InvalidInput, match=r"some.py:3: .*must be literals"):
        expected_checks(folder, [])


CHECK_OF_AN_APPLICATION = """
@rfm.simple_test
class Melt(rfm.RunOnlyRegressionTest, AppMixin):
    \"\"\"A melt.\"\"\"

    tags = {"app"}
    software = "LAMMPS"
    ranks = parameter([1, 2])
"""


def test_checks_of_applications_run_where_the_plan_has_the_package(tmp_path: Path) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "lammps.py").write_text(CHECK_OF_AN_APPLICATION)
    found = expected_checks(tmp_path, ["app"])
    assert [(check.name, check.software) for check in found] == [("Melt", "LAMMPS")] * 2
    one, other = {"module": "mvapich/4.0-ucx"}, {"module": "mvapich/4.0-ofi"}
    plan = {"packages": [{"name": "LAMMPS", "mpi": one["module"]}]}
    assert found[0].runs_over(one, plan) and not found[0].runs_over(other, plan)
    assert not found[0].runs_over(one, {})


@pytest.mark.parametrize(
    ("plan", "runs"),
    [
        ({"scheduler": "squeue", "job": {"nodes": 2}}, True),
        ({"scheduler": "local", "job": {"nodes": 2}}, False),  # Kubernetes: one pod
        ({"scheduler": "local", "job": {}}, False),
        ({}, False),
    ],
)
def test_checks_of_whole_nodes_run_where_jobs_are_submitted(plan, runs):
    found = [check for check in expected_checks(CHECKS, ["smoke"]) if check.needs == "nodes"]
    assert {check.name for check in found} == {"WorldSizeOfJob", "CollectivesOfJob"}
    assert {check.runs_over({"module": "mvapich/4.0-ofi"}, plan) for check in found} == {runs}
