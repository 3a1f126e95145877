"""``mvstack WORD…`` in the process of a test: what it printed, and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mvstack.cli import main as cli


class Said(NamedTuple):
    code: int
    out: str
    err: str


Mvstack = Callable[..., Said]


@pytest.fixture
def mvstack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Mvstack:
    """``mvstack WORD…`` in this process, with state and stacks below ``tmp_path``."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("MVSTACK_ROOT", str(tmp_path / "stacks"))
    monkeypatch.setenv("MVSTACK_SITE", "")  # --site sets it
    return runner(monkeypatch, capsys)


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mvstack:
    """The same where the test has set what it needs."""
    umask = os.umask(0o022)
    os.umask(umask)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["mvstack", *map(str, words)])
        capsys.readouterr()
        try:
            cli.main()
            code: Any = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            os.umask(umask)
        return Said(int(code), *capsys.readouterr())

    return run
