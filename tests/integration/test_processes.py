"""Programs that are run and followed: what they say, and that they end, whatever ends us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mvstack.support.processes import Limits, TimedOut, end_marked, english, follow, run, started

FOLLOWS = """
import sys
from mvstack.support.processes import follow
script = f"sleep 600 & echo $! > {sys.argv[1]}.new; mv {sys.argv[1]}.new {sys.argv[1]}; wait"
follow(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}, line=print)
"""
SOURCE = str(Path(__file__).resolve().parents[2] / "src")


def lives(pid: int) -> bool:
    """Whether a process runs; one that ended and is not yet asked for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(true: object, seconds: int = 60) -> bool:
    """Wait for what a busy machine may take its time for."""
    for _ in range(seconds * 10):
        if true():  # type: ignore[operator]
            return True
        time.sleep(0.1)
    return False


def test_what_the_program_started_ends_with_us_when_we_are_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    ours = subprocess.Popen([sys.executable, "-c", FOLLOWS, str(file)], env=environment)
    assert until(file.exists)
    grandchild = int(file.read_text())
    assert lives(grandchild)
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert until(lambda: not lives(grandchild))


def test_lines_and_status_are_those_of_the_program() -> None:
    said: list[str] = []
    assert follow(["sh", "-c", "echo a; echo b >&2; exit 3"], os.environ, line=said.append) == 3
    assert said == ["a", "b"]
    assert follow(["sh", "-c", "kill -TERM $$"], os.environ, line=said.append) == -15


def test_bytes_that_are_no_text_do_not_stop_the_reader() -> None:
    said: list[str] = []
    follow(["printf", r"a\377b\n"], os.environ, line=said.append)
    assert said == ["a\ufffdb"]


def test_an_exception_ends_descendants_in_other_sessions_that_ignore_sigterm() -> None:
    """As ReFrame's jobs are: in a session of their own; and as deaf as a program can be."""
    program = (
        "import subprocess, sys, time\n"
        "deaf = 'import signal, time; signal.signal(15, 1); print(0, flush=True); time.sleep(99)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], start_new_session=True,"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(99)\n"
    )
    pids: list[int] = []

    def stop(line: str) -> None:
        pids.append(int(line))
        assert lives(pids[0])
        raise KeyboardInterrupt

    command = [sys.executable, "-c", program]
    with pytest.raises(KeyboardInterrupt):
        follow(command, os.environ, line=stop, limits=Limits(grace=1))
    assert not lives(pids[0])


def test_a_program_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mvstack.support.processes.TICK", 0.1)
    ticks: list[int] = []
    with pytest.raises(TimedOut):
        follow(
            ["sleep", "600"],
            os.environ,
            line=print,
            tick=lambda: ticks.append(1),
            limits=Limits(silence=0.3),
        )
    assert ticks


def test_a_program_gets_its_grace_to_clean_up(tmp_path: Path) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    with (tmp_path / "out").open("wb") as out:
        with started(["sh", "-c", script], os.environ, out, grace=30) as process:
            assert until((tmp_path / "out").read_text)
        assert process.returncode == 0
    assert (tmp_path / "out").read_text() == "ready\ncleaned\n"


def test_what_a_program_prints_is_kept_apart_and_its_input_is_ours() -> None:
    done = run(["sh", "-c", "cat; echo b >&2; exit 3"], data=b"a\n")
    assert (done.text, done.errors, done.status, done.ok) == ("a\n", "b\n", 3, False)
    assert run(["sh", "-c", "echo $LC_ALL $ONE"], env=english(ONE="1")).text == "C.UTF-8 1\n"
    with pytest.raises(FileNotFoundError):
        run(["/nowhere/tool"])


def test_a_run_past_its_limit_is_killed_with_its_children() -> None:
    done = run(["sh", "-c", "sleep 600 & echo $!; wait"], limit=0.5)
    assert done.timed_out and not done.ok
    assert until(lambda: not lives(int(done.text)))


def test_processes_are_ended_by_a_mark_in_their_environment(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "MARK": f"{tmp_path}"}) as process:
        assert until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
        assert end_marked("MARK", tmp_path.parent) == 0
        assert end_marked("MARK", tmp_path) == 1
        assert process.wait() == -9
