"""What `mvstack test` asks of a tree before any check runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.support.errors import Refused
from mvstack.support.progress import Progress
from mvstack.test.run import run_tests


def test_a_tree_without_its_module_is_refused_before_all_checks_fail(tmp_path: Path) -> None:
    plan = {"tree": str(tmp_path), "release": "2026.11", "system": "local", "partition": "node"}
    with pytest.raises(Refused) as caught:
        run_tests(plan, [], Progress())
    (problem,) = caught.value.problems
    assert problem.where == str(tmp_path)
    assert "did not come to its end" in problem.message
    assert "mvstack install local/node" in problem.todo
    assert list(tmp_path.iterdir()) == []
