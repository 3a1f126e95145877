"""`mvstack sources` as a person or a script runs it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OTHER = b"\x1f\x8b other bytes than upstream's"
HASH = hashlib.sha256(OTHER).hexdigest()


class Sources:
    """Runs the command over a mirror of its own, with no way out to a network."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"

    def __call__(self, *words: str, rc: int = 0) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "MVSTACK_ROOT": str(self.root),
            "https_proxy": "http://127.0.0.1:1",
            "http_proxy": "http://127.0.0.1:1",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        done = subprocess.run(
            [sys.executable, "-m", "mvstack", "sources", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == rc, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words: str, rc: int = 0) -> Any:
        """The answer as one JSON document."""
        return json.loads(self(*words, "--json", rc=rc).stdout)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.tar.gz"
    path.write_bytes(OTHER)
    return str(path)


def test_other_bytes_from_adding_to_forgetting(sources: Sources, file: str) -> None:
    said = sources("add", file, "--as", "mvapich@4.0", rc=5).stderr
    assert HASH in said
    assert "c532f7bdd5cca71f78c12e0885c492f6e276e283711806c84d0b0f80bb3e3b74" in said
    assert sources.json("list") == []
    words = ["--accept-hash", HASH, "--reason", "a tree of our own"]
    row = sources.json("add", file, "--as", "MVAPICH@4.0", *words)
    assert (row["upstream"], row["sha256"]) == (False, HASH)
    (entry,) = sources.json("list")
    assert entry["accepted"]
    assert entry["note"] == "not upstream's bytes: a tree of our own"
    assert "not upstream's bytes: a tree of our own" in sources("list").stdout
    (fetched,) = sources.json("fetch", "mvapich@4.0")["sources"]
    assert fetched["upstream"] is False
    assert [row["sha256"] for row in sources.json("forget", "mvapich@4.0")] == [HASH]
    assert sources.json("fetch", "mvapich@4.0", rc=5)["sources"] == []
    assert "nothing was accepted" in sources("forget", "mvapich@4.0").stdout


def test_a_licensed_file_is_not_for_everybody(sources: Sources, tmp_path: Path) -> None:
    packed = tmp_path / "qchem-5.3.tar.gz"
    packed.write_bytes(b"\x1f\x8b a site's own")
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    words = ["add", str(packed), "--as", "q-chem@5.3"]
    assert f"--accept-hash {digest}" in sources(*words, rc=5).stderr
    sources(*words, "--accept-hash", digest, "--reason", "our installation")
    (kept,) = (path for path in sources.root.rglob(f"{digest}*") if not path.is_symlink())
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_what_cannot_be_had_is_said_and_the_rest_is_brought(sources: Sources, file: str) -> None:
    words = ["--accept-hash", HASH, "--reason", "x"]
    sources("add", file, "--as", "mvapich@4.0", *words)
    answer = sources.json("fetch", "mvapich@4.0", "mvapich@3.0", rc=5)
    assert [row["source"] for row in answer["sources"]] == ["mvapich@4.0"]
    assert [problem["where"][:11] for problem in answer["problems"]] == ["mvapich@3.0"]
    assert "1 of 2 sources are in the mirror" in answer["outcome"]
    plain = sources("fetch", "mvapich@4.0", "mvapich@3.0", rc=5)
    assert "mvapich-3.0.tar.gz cannot be fetched" in plain.stderr
    assert "mvapich@4.0" in plain.stdout


def test_a_mirror_given_by_hand(sources: Sources, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "mvapich-4.0.tar.gz").write_bytes(OTHER)
    answer = sources.json("fetch", "mvapich@4.0", "--mirror", str(site), rc=5)
    assert HASH in answer["problems"][0]["found"]


def test_verify_and_remove_what_is_damaged(sources: Sources, file: str) -> None:
    words = ["--accept-hash", HASH, "--reason", "x"]
    path = Path(sources.json("add", file, "--as", "mvapich@4.0", *words)["path"])
    assert "1 of 1 files" in sources("verify").stdout
    path.write_bytes(b"bit rot")
    assert "damaged" in sources("verify", rc=1).stderr
    assert path.exists()
    assert [row["state"] for row in sources.json("verify", rc=1)] == ["damaged"]
    (row,) = sources.json("verify", "--remove-damaged")
    assert row["removed"]
    assert not path.exists()
    (path.parent / "notes.txt").write_text("somebody's own")
    assert "0 of 0 files" in sources("verify", "--remove-damaged").stdout
    assert (path.parent / "notes.txt").exists()


@pytest.mark.parametrize(
    ("words", "rc", "said"),
    [
        (["fetch", "mvapitch@4.0"], 3, "did you mean mvapich@4.0?"),
        (["add", "/nonexistent", "--as", "mvapich@4.0"], 3, "no such file"),
        (["add", "/", "--as", "mvapich@4.0"], 3, "not a regular file"),
        (["add", "/nonexistent", "--as", "nothing"], 3, "no recipe has a source"),
        (["add", "/nonexistent", "--as", "mvapich"], 3, "say which one"),
        (["add", "/x", "--as", "mvapich@4.0", "--accept-hash", "12"], 3, "64 hexadecimal digits"),
        (["add", "/x"], 2, "--as"),
    ],
)
def test_mistakes(sources: Sources, words: list[str], rc: int, said: str) -> None:
    assert said in sources(*words, rc=rc).stderr
    assert not sources.root.exists()


def test_every_command_explains_itself_with_an_example(sources: Sources) -> None:
    for command in ("list", "verify", "fetch", "add", "forget"):
        text = sources(command, "--help").stdout
        assert f"mvstack sources {command}" in text.split("Example")[1]


def test_the_sources_of_a_system(sources: Sources) -> None:
    """What its plan needs, by name and version, whichever builder it has."""
    answer = sources.json("fetch", "aws-hpc7a", rc=5)
    told = str(answer)
    assert "mvapich@4.0" in told
    assert "hpcc@1.5.0" in told
