"""The small part of the applications, built over the MPI that `mvstack up local` built, and run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from one_writer import one_writer

from mvstack.install.prerequisites import lacking
from mvstack.install.stages import default_root

TOP = Path(__file__).resolve().parents[2]
SOFTWARE = {"FFTW.MPI", "Hypre", "mpi4py"}


def mvstack(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "mvstack", *arguments],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def tree() -> Path:
    """The tree of this machine, with the small profile in it."""
    place = Path(default_root(), "2026.11", "local")
    if not (place / "modules" / "Core" / "mvapich-stack" / "2026.11.lua").is_file():
        pytest.skip(f"no tree in {place}: `./mvstack up local` makes it")
    if missing := lacking("debian12", "small"):
        pytest.skip(f"not installed: {', '.join(one.package for one in missing.needed)}")
    with one_writer():
        done = mvstack("install", "local", "--profile", "small")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return place


@pytest.fixture(scope="module")
def results(tree: Path) -> dict[str, Any]:
    done = mvstack("test", "local", "--tag", "app", "--json")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_its_packages_are_in_the_plan_and_in_the_tree(tree: Path) -> None:
    plan = json.loads((tree / "rendered" / "plan.json").read_text())
    mine = [one for one in plan["packages"] if one["name"] in SOFTWARE]
    assert {one["name"] for one in mine} == SOFTWARE, plan["left_out"]
    modules = tree / "modules" / "MPI" / "gcc" / plan["compiler"]["version"]
    for one in mine:
        assert (modules / one["mpi"] / f"{one['module']}.lua").is_file()


def test_each_gave_its_right_answer_on_1_2_and_4_ranks(results: dict[str, Any]) -> None:
    passed = Counter(
        case["benchmark"].split()[0] for case in results["cases"] if case["result"] == "pass"
    )
    ranks = {case["ranks"] for case in results["cases"]}
    assert set(passed) >= SOFTWARE and ranks == {1, 2, 4}
    assert [case for case in results["cases"] if case["result"] != "pass"] == []


def test_it_is_all_there_the_second_time(tree: Path) -> None:
    done = mvstack("install", "local", "--profile", "small", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_the_tree_keeps_its_profile(tree: Path) -> None:
    done = mvstack("explain", "local", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["plans"][0]["profile"] == "small"
