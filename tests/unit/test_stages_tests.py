"""What `mvstack test` asks of a tree before any check runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvstack.support import locks
from mvstack.support.errors import Locked, Refused
from mvstack.support.progress import Progress
from mvstack.test import run
from mvstack.test.run import run_tests
from mvstack.tree.modules import core_file


def test_a_tree_without_its_module_is_refused_before_all_checks_fail(tmp_path: Path) -> None:
    plan = {"tree": str(tmp_path), "release": "2026.11", "system": "local", "partition": "node"}
    with pytest.raises(Refused) as caught:
        run_tests(plan, [], Progress())
    (problem,) = caught.value.problems
    assert problem.where == str(tmp_path)
    assert "did not come to its end" in problem.message
    assert "mvstack install local/node" in problem.todo
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, Any]:
    """The plan of a tree that may be checked, with the results of an earlier run."""
    plan = {"tree": str(tmp_path), "release": "2026.11", "system": "local", "partition": "node"}
    core = core_file(tmp_path, "2026.11")
    core.parent.mkdir(parents=True)
    core.touch()
    last = tmp_path / "records" / "last-test"
    last.mkdir(parents=True)
    (last / "results.json").write_text("{}")
    return plan


def test_results_of_an_earlier_run_are_not_kept_as_of_this_one(
    whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Refused("no check has the tag smok")

    monkeypatch.setattr(run, "checked", refuse)
    with pytest.raises(Refused, match="smok"):
        run_tests(whole, ["smok"], Progress())
    assert not (Path(whole["tree"]) / "records" / "results").exists()


def test_checks_of_one_tree_do_not_run_twice_at_once(whole: dict[str, Any]) -> None:
    lock = Path(whole["tree"]) / "records" / "last-test.lock"
    with locks.hold(lock), pytest.raises(Locked, match="running the checks") as caught:
        run_tests(whole, [], Progress())
    assert "pid" in caught.value.problems[0].found
