"""The mirror with several processes at work in it, and one that is killed."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mvstack.sources.store import Entry, Store


def put(store: Store, data: bytes) -> None:
    sha256 = hashlib.sha256(data).hexdigest()
    file = store.root.parent / "file"
    file.write_bytes(data)
    store.add(file, Entry(sha256, "a-1.tar.gz", "a@1", len(data), "here"))


def states(store: Store) -> list[str]:
    return [verdict.state for verdict in store.verify()]


def left_over(store: Store) -> list[Path]:
    return [path for path in store.root.rglob("*") if ".incoming" in path.name]


CHILD = """
import hashlib, sys, time
from pathlib import Path
from mvstack.sources.store import Entry, Store
store, what = Store(Path(sys.argv[1])), sys.argv[2]
if what == "hang":
    with store.incoming() as folder:
        (folder / "file").write_bytes(b"half")
        print("writing", flush=True)
        time.sleep(60)
else:
    for number in range(30):
        data = f"{what} {number}".encode()
        file = store.root.parent / f"{what}-{number}"
        file.write_bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        store.add(file, Entry(sha256, f"{what}-{number}.tar.gz", what, len(data), "here"))
        store.link_easybuild("Alpha", "same-name.tar.gz", sha256)
"""


def child(store: Store, what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(store.root), what], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "sources")
    children = [child(store, what) for what in ("one", "two", "three")]
    assert [process.wait(60) for process in children] == [0, 0, 0]
    assert len(json.loads(store.index.read_text())) == 90
    assert states(store) == ["good"] * 90
    assert not left_over(store)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_in_the_middle_nothing_half_written_stays(
    tmp_path: Path, how: signal.Signals
) -> None:
    store = Store(tmp_path / "sources")
    process = child(store, "hang")
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    put(Store(store.root), b"meanwhile")
    assert left_over(store), "what another process is writing must not be swept away"
    process.send_signal(how)
    process.wait(20)
    process.stdout.close()
    assert len(store.entries()) == 1
    put(Store(store.root), b"the next command")
    assert not left_over(store)
    assert states(store) == ["good", "good"]
