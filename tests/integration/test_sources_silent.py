"""A host that does not answer is asked once: counted in calls, not in seconds."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import SourceError

UNKNOWN = "mvstack-no-such-host.invalid"


class Calls:
    """Counts calls of what stands behind it, which is called as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.real, self.count = getattr(owner, name), 0
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.count += 1
        return self.real(*args, **more)


@pytest.fixture(autouse=True)
def direct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, for it would be the proxy that is asked; and nothing of a user's own state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def closed() -> Iterator[str]:
    """An address of this machine that refuses connections: bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def spec(url: str, version: str) -> SourceSpec:
    name = f"tiny-{version}.tar.gz"
    return SourceSpec("Tiny", version, name, ("ab" * 32,), (f"http://{url}/{name}",))


def fails(fetcher: Fetcher, wanted: SourceSpec) -> str:
    with pytest.raises(SourceError) as caught:
        fetcher.fetch(wanted)
    assert list(fetcher.store.root.glob(".incoming-*")) == []
    return caught.value.problems[0].found


def test_a_name_is_looked_up_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch, socket, "getaddrinfo")
    store = Store(tmp_path / "sources")
    fetcher = Fetcher(store, [])
    assert "DNS" in fails(fetcher, spec(UNKNOWN, "1"))
    assert calls.count == 1
    assert "not asked again" in fails(fetcher, spec(UNKNOWN, "2"))
    assert UNKNOWN in fails(Fetcher(store, []), spec(UNKNOWN, "3"))
    assert not Fetcher(store, []).available(spec(UNKNOWN, "4"))
    assert calls.count == 1


def test_a_closed_port_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    calls = Calls(monkeypatch, requests, "get")
    fetcher = Fetcher(Store(tmp_path / "sources"), [])
    assert "refuses connections" in fails(fetcher, spec(closed, "1"))
    assert "refuses connections" in fails(fetcher, spec(closed, "2"))
    assert not Fetcher(fetcher.store, []).available(spec(closed, "3"))
    assert calls.count == 1
