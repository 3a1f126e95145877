"""The check Identity, in Lmod and ReFrame, on an MPI whose module sets what was tuned."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from measured_tree import measured

from mvstack.render.templates import template
from mvstack.test.run import CHECKS, run_checks

TUNING = {"UCX_RNDV_THRESH": {"value": "16384", "why": "measured", "source": "here"}}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan of a tree whose MPI's module sets TUNING, which the plan does not say."""
    found = measured(tmp_path_factory.mktemp("tuned") / "root")
    row = found["mpi"][0]
    module = Path(found["tree"], "modules", "Core", f"{row['module']}.lua")
    build = SimpleNamespace(module=row["module"], tuning=TUNING)
    module.write_text(module.read_text() + template("tuned.lua", build=build))
    return found


def identity(plan: dict[str, Any], folder: Path, **row: Any) -> dict[str, Any]:
    changed = plan | {"mpi": [plan["mpi"][0] | row]}
    checks = folder / "checks"
    shutil.copytree(CHECKS, checks, ignore=shutil.ignore_patterns("apps", "__pycache__"))
    for path in checks.glob("*.py"):
        if "simple_test" in path.read_text() and path.stem != "identity":
            path.unlink()
    (case,) = run_checks(changed, folder / "out", [], checks=checks)["cases"]
    return dict(case)


def test_what_was_tuned_and_planned_passes(plan: dict[str, Any], tmp_path: Path) -> None:
    case = identity(plan, tmp_path, tuning=TUNING)
    assert case["result"] == "pass", case["why"]


def test_the_same_fails_where_the_plan_does_not_say_it(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    case = identity(plan, tmp_path)
    assert case["result"] == "fail" and "UCX_RNDV_THRESH is 16384" in case["why"]


def test_untuned_it_is_not_set_and_not_expected(
    plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVAPICH_STACK_UNTUNED", "1")
    case = identity(plan, tmp_path, tuning=TUNING)
    assert case["result"] == "pass", case["why"]


def test_a_module_that_lacks_one_fails(plan: dict[str, Any], tmp_path: Path) -> None:
    more = {"UCX_TLS": {"value": "posix,self", "why": "", "source": ""}}
    case = identity(plan, tmp_path, tuning=TUNING | more)
    assert case["result"] == "fail" and "UCX_TLS is not set" in case["why"]
