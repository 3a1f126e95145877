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
from mvstack.builders.spack.lock import Environment
from mvstack.cli import main as cli
from mvstack.support.errors import CheckFailed, MvstackError, Problem

GATES = lock.through_the_gates


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
    def gates(environment: Environment, _answer: Any) -> None:
        plan = environment.plan
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


# --- mvstack gate ---------------------------------------------------------------------------------


def gate(tree: Tree, *words: str) -> Any:  # noqa: F811
    """``mvstack gate WORD…`` over the program that stands for Spack."""
    return CliRunner().invoke(cli.app, ["gate", "--root", str(tree.top / "root"), *words])


def test_a_lock_by_hand_is_held_to_the_gates_of_the_partition_that_it_is_said_to_be_of(
    here: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(lock, "through_the_gates", lambda one, _: seen.append(one.what))
    assert run(here, "expanse/cpu", "--to", str(here.top / "locks")).exit_code == 0
    here.calls()
    seen.clear()
    place = here.top / "locks" / "expanse" / "cpu"
    done = gate(here, str(place / "spack.lock"), "--json")  # its folders say which partition
    assert done.exit_code == 0, done.output
    assert [row["what"] for row in json.loads(done.stdout)] == ["compiler", "stack"]
    assert seen == ["the compiler of expanse/cpu", "expanse/cpu"]
    (here.top / "mine.lock").write_text((place / "spack.lock").read_text())
    done = gate(here, str(here.top / "mine.lock"), "alps/cpu")
    assert done.exit_code == 0 and "alps/cpu: stack: 3 packages pass the gates" in done.stdout
    assert here.calls() == []  # nothing is solved
    assert list((here.top / "tmp").iterdir()) == []


def test_a_lock_that_breaks_a_gate_ends_with_1(here: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "through_the_gates", GATES)
    monkeypatch.setattr(Environment, "differences", lambda _: [])
    done = gate(here, str(here.top / "lock.json"), "expanse/cpu")
    assert isinstance(done.exception, CheckFailed) and done.exception.exit_code == 1
    told = {problem.message for problem in done.exception.problems}
    assert {"gate hash", "gate solver", "gate roots"} <= told  # the fake solver's hashes are none


def test_a_system_of_several_partitions_is_not_enough(here: Tree) -> None:
    done = gate(here, str(here.top / "lock.json"), "expanse")
    assert isinstance(done.exception, MvstackError) and done.exception.exit_code == 3
    assert "name the one that is meant" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (None, ("expanse/cpu",), "cannot be read"),
        ("{}", ("expanse/cpu",), "is no Spack lock file"),
        ("", (), "no Spack lock file"),
    ],
)
def test_what_is_no_lock_is_told_before_spack_is_cloned(
    here: Tree, text: str | None, words: tuple[str, ...], says: str
) -> None:
    file = here.top / "some.lock"
    if text is not None:
        file.write_text(text)
    done = gate(here, str(file), *words)
    assert isinstance(done.exception, MvstackError) and done.exception.exit_code == 3
    assert says in str(done.exception) and str(file) in str(done.exception)
    assert not (here.top / "root").exists()
