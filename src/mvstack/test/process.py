"""Run one command, hand on its lines as they come, and leave no process behind.

ReFrame starts each job in a session of its own, so that signalling ReFrame's process group is not
enough: on the way out every descendant is looked for.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

# How long a process may take to clean up after SIGTERM before it is killed, in seconds.
GRACE = 4.0


def run(
    command: list[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    on_line: Callable[[str], None],
) -> int:
    """Run ``command`` and return its exit code; each line of its output goes to ``on_line``.

    Whatever interrupts this (Ctrl-C, an exception of ``on_line``) ends all that the command has
    started. If this process dies without a word, the kernel sends the command a SIGTERM.
    """
    setpriv = shutil.which("setpriv")  # util-linux, on every Debian
    prefix = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    process = subprocess.Popen(
        [*prefix, *command],
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.rstrip("\n"))
        return process.wait()
    except BaseException:
        end(process)
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()


def end(process: subprocess.Popen[str]) -> None:
    """End ``process`` and all its descendants: SIGTERM, a time of grace, SIGKILL."""
    family = descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    family |= descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and (alive := _alive(family)):
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        # A killed parent hands its children on; whoever is new below the living is killed too.
        family |= set().union(*(descendants(pid) for pid in alive))
        time.sleep(0.05)


def descendants(root: int) -> set[tuple[int, str]]:
    """All processes below ``root``, each with the time it started, which tells a reused number."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append((int(entry.name), stat[19]))
    found: set[tuple[int, str]] = set()
    todo = [root]
    while todo:
        below = [child for child in children.get(todo.pop(), []) if child not in found]
        found.update(below)
        todo += [pid for pid, _ in below]
    return found


def _alive(family: set[tuple[int, str]]) -> list[int]:
    stats = {pid: _stat(pid) for pid, _ in family}
    return [
        pid
        for pid, started in family
        if (stat := stats[pid]) and stat[19] == started and stat[0] != "Z"
    ]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on (proc(5)): 1 is the parent, 19 the start."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name before it is in parentheses and may hold any character.
    return text[text.rindex(")") + 2 :].split()
