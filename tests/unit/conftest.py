"""The fast lane: unit tests start no process, reach no network and see no installed tree."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

tuple(platform.uname())  # EasyBuild asks on import, and Python asks `uname -p` once

FORBIDDEN = {
    "subprocess.Popen": "starts a process",
    "os.fork": "forks",
    "os.posix_spawn": "starts a process",
    "os.system": "starts a shell",
    "socket.connect": "opens a connection",
    "socket.getaddrinfo": "asks for an address",
}
_inside = False


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _inside and event in FORBIDDEN:
        raise AssertionError(
            f"a unit test {FORBIDDEN[event]} ({arguments[0]!r}): move it to tests/integration"
        )


sys.addaudithook(_audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    global _inside
    _inside = True
    try:
        return (yield)
    finally:
        _inside = False


@pytest.fixture(autouse=True)
def _nothing_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MVSTACK_ROOT", str(tmp_path / "no-root"))
