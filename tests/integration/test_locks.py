"""Locks between processes: who holds one, waiting, sharing; and what a killed install left."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mvstack.support import locks
from mvstack.support.errors import Locked, Missing
from mvstack.tree.folder import MARK, end_leftovers, locked

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
HOLDER = """
import sys, time
from pathlib import Path
from mvstack.tree.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""
# Each adds to a number in a file, slowly: without a lock some additions would be lost.
COUNTER = """
import sys, time
from pathlib import Path
from mvstack.support import locks
from mvstack.support.errors import Locked
from mvstack.tree.folder import locked
root, done = Path(sys.argv[1]), 0
file = root.parent / "number"
while done < 5:
    try:
        with locked(root):
            number = int(file.read_text())
            time.sleep(0.01)
            file.write_text(str(number + 1))
            done += 1
    except Locked:
        time.sleep(0.005)
"""


@contextmanager
def held(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of ``root``."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, root], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_held_lock_says_who_holds_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with held(root) as process, pytest.raises(Locked) as caught, locked(root):
        pass
    problem = caught.value.problems[0]
    assert f"pid {process.pid} on {socket.gethostname()} since 20" in problem.found
    assert problem.where == str(root) and problem.todo
    assert caught.value.exit_code == 8


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with held(tmp_path):
        pass
    with locked(tmp_path):
        assert f"pid {os.getpid()} " in (tmp_path / ".lock").read_text()


def test_the_lock_is_free_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), locked(tmp_path):
            raise KeyboardInterrupt


def test_two_roots_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with held(tmp_path / "one"), locked(tmp_path / "two"):
        pass


def test_only_one_of_several_processes_is_inside(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    words = [sys.executable, "-c", COUNTER, tmp_path / "root"]
    running = [subprocess.Popen(words, env=ENVIRONMENT) for _ in range(3)]
    assert [process.wait(timeout=100) for process in running] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "15"


@pytest.mark.parametrize("below", ["file/root", "file"])
def test_a_root_that_cannot_be_made_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Missing) as caught, locked(tmp_path / below):
        pass
    problem = caught.value.problems[0]
    assert problem.where == str(tmp_path / below) and "--root" in problem.todo


# --- leftovers -----------------------------------------------------------------------------------


@contextmanager
def sleeping(**marks: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that would go on for long, with ``marks`` in its environment."""
    with subprocess.Popen(["sleep", "100"], env={**os.environ, **marks}) as process:
        path = Path(f"/proc/{process.pid}/comm")
        while path.read_text() != "sleep\n":  # until it is the program with its environment
            time.sleep(0.01)
        try:
            yield process
        finally:
            process.kill()


def test_only_processes_that_build_into_the_tree_are_ended(tmp_path: Path) -> None:
    tree, other = tmp_path / "2026.11" / "local", tmp_path / "2026.11" / "local2"
    tree.mkdir(parents=True)
    with (
        sleeping(**{MARK: str(tree)}) as ours,
        sleeping(**{MARK: str(other)}) as theirs,
        sleeping(**{"X" + MARK: str(tree), "TREE": str(tree)}) as alike,
        sleeping() as stranger,
    ):
        assert end_leftovers(tree) == 1
        assert ours.wait(timeout=10) == -9
        assert [one.poll() for one in (theirs, alike, stranger)] == [None] * 3
        assert end_leftovers(tree) == 0


def test_a_build_in_a_container_into_a_folder_of_that_name_goes_on(tmp_path: Path) -> None:
    inside = f"mount -t tmpfs x {tmp_path}; exec sleep 100"
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", inside]
    with subprocess.Popen(words, env={**os.environ, MARK: str(tmp_path)}) as process:
        try:
            until = time.monotonic() + 10
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                if process.poll() is not None:
                    pytest.skip("skipped: no namespaces of its own for a user here")
                assert time.monotonic() < until
                time.sleep(0.01)
            assert end_leftovers(tmp_path) == 0
            assert process.poll() is None
        finally:
            process.kill()


def test_a_process_of_ours_that_is_marked_itself_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    assert end_leftovers(tmp_path) == 0  # it is this very process


def test_one_that_has_ended_is_not_named_for_another_that_reads(tmp_path: Path) -> None:
    """`mvstack cache push` takes the lock for reading, and writes nothing into it."""
    with locked(tmp_path):
        assert locks.holder(tmp_path / ".lock").startswith(f"pid {os.getpid()} on ")
    with locks.share(tmp_path / ".lock"), pytest.raises(Locked) as caught, locked(tmp_path):
        pass
    assert "mvstack cache push" in caught.value.problems[0].found


# --- the locks themselves ------------------------------------------------------------------------


def test_the_holder_is_named_with_its_command_and_is_no_escape_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/mvstack/__main__.py", "install", "a b\x1b[2J"])
    with locks.hold(tmp_path / "lock"):
        said = locks.holder(tmp_path / "lock")
    assert said.endswith("mvstack install 'a b\ufffd[2J'") and "\x1b" not in said
    assert locks.holder(tmp_path / "lock") == ""


def test_one_that_waits_says_for_whom_and_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    with held(tmp_path) as process:

        def waiting(holder: str) -> None:
            told.append(holder)
            process.kill()

        with locks.hold(tmp_path / ".lock", waiting=waiting):
            assert told[0].startswith(f"pid {process.pid} on ")


def test_looking_at_a_lock_neither_makes_nor_takes_nor_changes_it(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    assert not locks.is_held(file) and not file.exists()
    with locks.share(file), locks.share(file):
        pass
    with held(tmp_path):
        said = file.read_text()
        assert locks.is_held(file) and file.read_text() == said
        with pytest.raises(locks.Held), locks.share(file):
            pass
    assert not locks.is_held(file)


def test_a_lock_whose_file_is_removed_meanwhile_guards_nothing(tmp_path: Path) -> None:
    with locks.hold(tmp_path / "lock"):
        (tmp_path / "lock").unlink()
        with locks.hold(tmp_path / "lock", wait=False):
            mine = locks.holder(tmp_path / "lock")
        assert mine
