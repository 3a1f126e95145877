"""`mvstack lock`: any system on any machine, each with its own answer, nothing left behind."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from test_spack_install import Tree, tree  # noqa: F401  (a fixture)
from typer.testing import CliRunner

from mvstack.builders.spack import lock
from mvstack.builders.spack.isolated import Isolated
from mvstack.cli import main as cli
from mvstack.plan.types import Plan
from mvstack.support.errors import CheckFailed, MvstackError, Problem


@pytest.fixture
def here(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:  # noqa: F811
    """Everything temporary goes below the test's folder, so that what is left is seen."""
    (tree.top / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tree.top / "tmp"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tree.top / "state"))
    return tree


def run(tree: Tree, *words: str) -> Any:  # noqa: F811
    """``mvstack lock WORD…`` over the program that stands for Spack."""
    return CliRunner().invoke(cli.app, ["lock", "--root", str(tree.top / "root"), *words])


def test_each_partition_is_solved_and_told(here: Tree) -> None:
    done = run(here, "expanse", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(row["name"], row["what"]) for row in rows] == [
        ("expanse/cpu", "compiler"),
        ("expanse/cpu", "stack"),
        ("expanse/gpu", "compiler"),
        ("expanse/gpu", "stack"),
    ]
    assert {(row["packages"], row["built"]) for row in rows} == {(3, 2)}
    assert set(here.calls()) == {"python concretize.py"}  # nothing is installed


def test_nothing_is_left_unless_it_is_asked_for(here: Tree) -> None:
    assert run(here, "azure-hbv4/hpc").exit_code == 0
    assert list((here.top / "tmp").iterdir()) == []
    assert run(here, "azure-hbv4/hpc", "--to", str(here.top / "locks")).exit_code == 0
    kept = sorted(str(p.relative_to(here.top / "locks")) for p in here.top.rglob("locks/**/*.lock"))
    assert "azure-hbv4/hpc/spack.lock" in kept
    # what pipelines ask before they believe it (mvstack.builders.spack.handed)
    assert (here.top / "locks" / "azure-hbv4" / "hpc" / "lock.json").is_file()


def test_one_that_fails_stops_no_other(here: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def gates(_answer: Any, plan: Plan, *_: Any) -> None:
        if plan.partition == "cpu":
            raise CheckFailed(Problem("two MPIs", f"{plan.system}/{plan.partition}"))

    monkeypatch.setattr(lock, "through_the_gates", gates)
    done = run(here, "expanse")
    assert isinstance(done.exception, MvstackError) and done.exception.exit_code == 1
    assert [problem.where for problem in done.exception.problems] == ["expanse/cpu"]
    assert "expanse/gpu: stack: 3 packages, 2 of them to build" in done.stdout


def test_what_is_typed_wrong_is_told_before_anything_is_solved(here: Tree) -> None:
    (here.top / "file").touch()
    done = run(here, "expanse/cpu", "expans", "alps/none", "--to", str(here.top / "file"))
    assert isinstance(done.exception, MvstackError) and done.exception.exit_code == 3
    told = [problem.message for problem in done.exception.problems]
    assert len(told) == 3 and "expans" in told[0] and "none" in told[1]
    assert "lock files cannot be kept there" in told[2]
    assert not (here.top / "root" / "spack").exists() and "Nothing was solved" in str(
        done.exception
    )


def test_compiler_and_stack_do_not_share_a_configuration(
    here: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []
    command = Isolated.command

    def noted(self: Isolated, *words: str) -> list[str]:
        seen.append(self.config)
        return command(*words)  # bound to the tree already

    monkeypatch.setattr(Isolated, "command", noted)
    run(here, "expanse/cpu")
    assert len(set(seen)) == 2
