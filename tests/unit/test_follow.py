"""What is run and followed ends with us, whatever ends us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from mvstack.support.follow import follow

FOLLOWS = """
import sys
from mvstack.support.follow import follow
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
