"""Spack's Python: made once, from pinned packages by hash, whole or made again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mvstack.builders import following
from mvstack.builders.spack import clone as module
from mvstack.builders.spack.clone import REQUIREMENTS, python
from mvstack.support.errors import Missing, SourceError


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that it would run; each leaves an interpreter."""
    found: list[list[str]] = []

    def follow(command: list[str], env: dict[str, str], *, line: object, **_: object) -> int:
        found.append(command)
        program = Path(command[-1] if "venv" in command else "/nowhere") / "bin" / "python"
        if "venv" in command:
            program.parent.mkdir(parents=True)
            program.symlink_to(sys.executable)
        return 0

    monkeypatch.setattr(following, "follow", follow)
    return found


def test_it_is_made_by_hash_and_once(tmp_path: Path, calls: list[list[str]]) -> None:
    assert python(tmp_path) == tmp_path / "python" / "bin" / "python"
    assert [("venv" in c, "--require-hashes" in c) for c in calls] == [(True, False), (False, True)]
    calls.clear()
    python(tmp_path)
    assert calls == []


def test_reached_through_a_link_it_is_the_same(tmp_path: Path, calls: list[list[str]]) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").symlink_to(tmp_path / "one")
    python(tmp_path / "one")
    calls.clear()
    assert python(tmp_path / "other") == tmp_path / "one" / "python" / "bin" / "python"
    assert calls == []


def test_interrupted_or_pinned_anew_it_is_made_again(
    tmp_path: Path, calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    python(tmp_path)
    (tmp_path / "python" / ".ready").unlink()  # written last
    calls.clear()
    python(tmp_path)
    assert len(calls) == 2
    pins = tmp_path / "pins.txt"
    pins.write_text("clingo==0\n")
    monkeypatch.setattr(module, "REQUIREMENTS", pins)
    calls.clear()
    python(tmp_path)
    assert len(calls) == 2


@pytest.mark.parametrize(("failing", "kind"), [("venv", Missing), ("pip", SourceError)])
def test_what_fails_is_said_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, kind: type[Exception]
) -> None:
    def follow(command: list[str], env: dict[str, str], *, line: object, **_: object) -> int:
        assert callable(line)
        line("ERROR: No matching distribution found for clingo")
        return int(failing in command)

    monkeypatch.setattr(following, "follow", follow)
    with pytest.raises(kind, match="No matching distribution"):
        python(tmp_path)
    assert not (tmp_path / "python" / ".ready").exists()


def test_every_requirement_has_its_hash() -> None:
    text = REQUIREMENTS.read_text()
    names = [line.split("==")[0] for line in text.splitlines() if "==" in line]
    assert names == ["cffi", "clingo", "pycparser"]
    assert text.count("--hash=sha256:") > len(names)
