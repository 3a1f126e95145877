"""A full disk, a kill in the middle of a download: the mirror stays whole."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_server import Server, file, serving, slowly

from mvstack.sources.accepted import add_source
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import SourceError

DATA = gzip.compress(os.urandom(4_000_000), mtime=0)
HASH = hashlib.sha256(DATA).hexdigest()
NAME = "alpha-1.tar.gz"


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def spec_for(server: Server) -> SourceSpec:
    return SourceSpec("Alpha", "1", NAME, (HASH,), (f"{server.url}/{NAME}",))


def nothing_kept(store: Store) -> bool:
    return store.entries() == [] and not list(store.root.glob(".incoming*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "mvstack-test", str(folder)]
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root; the limit on file size is tried")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextlib.contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Files of this process grow to ``size`` bytes and no further, as on a quota."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_while_a_file_is_copied(small_disk: Path, tmp_path: Path) -> None:
    source = tmp_path / NAME
    source.write_bytes(DATA)
    store = Store(small_disk / "sources")
    spec = SourceSpec("Alpha", "1", NAME, (HASH,))
    for call in (
        lambda: add_source(store, spec, source, None, None),
        lambda: Fetcher(store, [str(tmp_path)]).fetch(spec),
    ):
        with pytest.raises(SourceError, match="No space left") as caught:
            call()
        assert "make room" in caught.value.problems[0].todo
        assert nothing_kept(store)


def test_a_quota_on_file_size(tmp_path: Path, server: Server) -> None:
    server.pages[f"/{NAME}"] = file(DATA)
    store = Store(tmp_path / "root" / "sources")
    bringing = Fetcher(store, [])
    with file_size_limit(1_000_000), pytest.raises(SourceError, match="File too large") as caught:
        bringing.fetch(spec_for(server))
    assert "make room" in caught.value.problems[0].todo
    assert nothing_kept(store)
    assert bringing.fetch(spec_for(server)).sha256 == HASH, "the same call goes on afterwards"


CHILD = """
import sys
from pathlib import Path
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
root, url, sha256 = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
def said(*_):
    print("loading", flush=True)
Fetcher(Store(root / "sources"), [], said).fetch(
    SourceSpec("Alpha", "1", "alpha-1.tar.gz", (sha256,), (url,)))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_killed_in_the_middle_of_a_download(
    tmp_path: Path, server: Server, how: signal.Signals
) -> None:
    server.pages[f"/{NAME}"] = slowly(DATA, 20)
    store, url = Store(tmp_path / "sources"), f"{server.url}/{NAME}"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path), url, HASH],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    process.send_signal(how)
    assert process.wait(120) != 0
    process.stdout.close()
    assert store.entries() == []
    assert store.get(HASH) is None
    if how == signal.SIGINT:
        assert nothing_kept(store), "Ctrl-C cleans up at once, the others with the next command"
    server.pages[f"/{NAME}"] = file(DATA)
    fetched = Fetcher(Store(store.root), []).fetch(spec_for(server))
    assert fetched.path.read_bytes() == DATA
    assert not list(store.root.glob(".incoming*"))
