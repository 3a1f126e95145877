"""Packages that only images need are installed when one is first used, and not before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mvstack.image import extras
from mvstack.support.errors import Missing


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose .venv this Python is; modules are looked for in ``modules`` too."""
    monkeypatch.setattr(extras, "DATA", tmp_path)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    (tmp_path / "modules").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    return tmp_path


def test_what_is_there_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    extras.need("json", "xml.etree")
    assert extras.load("json").loads("1") == 1


def test_what_is_lacking_is_installed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[-1] == str(checkout) and "set_up_images" in command[2]
        (checkout / "modules" / "only_for_images.py").write_text("here = True\n")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", install)
    assert extras.load("only_for_images").here


def test_what_cannot_be_installed_is_named(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.CompletedProcess([], 5)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(Missing, match=r"no_such_package\.part"):
        extras.need("json", "no_such_package.part")


def test_elsewhere_than_in_a_checkout_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "prefix", "/usr")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    with pytest.raises(Missing) as caught:
        extras.need("no_such_package")
    assert "mvapich-stack[images]" in caught.value.problems[0].todo


def test_an_interrupt_of_the_installation_is_one_of_the_command(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.CompletedProcess([], 130)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    with pytest.raises(KeyboardInterrupt):
        extras.need("no_such_package")
