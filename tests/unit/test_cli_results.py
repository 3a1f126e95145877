"""What `mvstack test --json` prints when a check fails: one document; and of a full disk."""

from __future__ import annotations

import errno
import json
import tempfile

import pytest
from typer.testing import CliRunner

from mvstack.cli import main as cli
from mvstack.cli import stack


@pytest.mark.parametrize(("result", "code"), [("pass", 0), ("fail", 1)])
def test_results_are_one_document(monkeypatch: pytest.MonkeyPatch, result: str, code: int) -> None:
    case = {"check": "Hpcc 2", "mpi": "mvapich/4.0-ucx", "result": result, "why": "too large"}
    found = {"cases": [case], "skipped": [], "seconds": 1.0, "slower": []}
    monkeypatch.setattr(stack, "installed_here", lambda *_: (None, {}))
    monkeypatch.setattr(stack, "run_tests", lambda *_: found)
    done = CliRunner().invoke(cli.app, ["test", "local", "--json"])
    assert (done.exit_code, json.loads(done.stdout)) == (code, found)


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--history"], 1)])
def test_what_became_slower_is_said_and_fails_where_asked(
    monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    row = {"what": "Benchmark latency with mvapich/4.0-ucx", "why": "latency is 13.2 us"}
    found = {"cases": [], "skipped": [], "seconds": 1.0, "slower": [row]}
    monkeypatch.setattr(stack, "installed_here", lambda *_: (None, {}))
    monkeypatch.setattr(stack, "run_tests", lambda *_: found)
    monkeypatch.setattr("sys.argv", ["mvstack", "test", "local", *words])
    done = CliRunner().invoke(cli.app, ["test", "local", *words])
    assert "slower: Benchmark latency with mvapich/4.0-ucx: latency is 13.2 us" in done.output
    assert bool(done.exception or done.exit_code) == bool(code)


def test_a_full_disk_that_names_no_file_may_be_that_of_temporary_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cli, "app", full)
    monkeypatch.setattr("sys.argv", ["mvstack", "cache", "push"])
    monkeypatch.setattr(tempfile, "tempdir", "/scratch/tmp")
    with pytest.raises(SystemExit):
        cli.main()
    assert "make room, perhaps in /scratch/tmp" in capsys.readouterr().err
