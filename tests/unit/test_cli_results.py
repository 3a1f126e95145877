"""What `mvstack test --json` prints when a check fails: one document."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from mvstack.cli import main as cli
from mvstack.cli import stack


@pytest.mark.parametrize(("result", "code"), [("pass", 0), ("fail", 1)])
def test_results_are_one_document(monkeypatch: pytest.MonkeyPatch, result: str, code: int) -> None:
    case = {"check": "Hpcc 2", "mpi": "mvapich/4.0-ucx", "result": result, "why": "too large"}
    found = {"cases": [case], "skipped": [], "seconds": 1.0}
    monkeypatch.setattr(stack, "installed_here", lambda *_: (None, {}))
    monkeypatch.setattr(stack, "run_tests", lambda *_: found)
    done = CliRunner().invoke(cli.app, ["test", "local", "--json"])
    assert (done.exit_code, json.loads(done.stdout)) == (code, found)
