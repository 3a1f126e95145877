"""Run one program in a session of its own, hand on its lines as they come, leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

# Reads a word that we write when all is done; when we die without it, ends what we started.
_WATCH = 'read -r _ || kill -s KILL -- "-$1" 2>/dev/null'
TICK = 2.0  # seconds between looks at what goes on while the program says nothing


class Silent(Exception):
    """The program said nothing for longer than it was given; it was ended."""


def follow(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    line: Callable[[str], object],
    tick: Callable[[], object] = lambda: None,
    cwd: Path | None = None,
    silence: float | None = None,
) -> int:
    """Run ``command`` to its end; its exit status, negative for a signal.

    ``line`` gets each line of its output, both streams in one, without the line's end; a carriage
    return ends a line too. ``tick`` is called when there was none for some seconds. Raises Silent
    after ``silence`` seconds without a word. Whatever ends this function, an exception of ``line``
    included, ends the program and all that it started; so does our own death by kill -9.
    """
    process = subprocess.Popen(
        list(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )
    try:
        with _watched(process.pid):
            _lines(process, line, tick, silence)
            return process.wait()
    finally:
        end(process)


def _lines(
    process: subprocess.Popen[bytes],
    line: Callable[[str], object],
    tick: Callable[[], object],
    silence: float | None,
) -> None:
    assert process.stdout is not None
    with process.stdout, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        pending, heard = b"", time.monotonic()
        while True:
            if not selector.select(TICK):
                if process.poll() is not None:
                    break  # it ended, and something that it started holds its output open
                if silence and time.monotonic() - heard > silence:
                    raise Silent
                tick()
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            heard = time.monotonic()
            *whole, pending = (pending + chunk).replace(b"\r", b"\n").split(b"\n")
            for text in whole:
                line(text.decode("utf-8", "replace"))
        if pending:
            line(pending.decode("utf-8", "replace"))


def end(process: subprocess.Popen[bytes]) -> None:
    """End the whole session of a program, make and compilers included, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def _watched(group: int) -> Iterator[None]:
    """Have another process end the process group ``group`` when we die in this block."""
    with subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "watch", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as watch:
        try:
            yield
        finally:
            watch.communicate(b"done\n")


def _die_with_parent() -> None:
    """Ask the kernel to end the program at once when mvstack itself is killed.

    What the program started itself is ended by the watch, a moment later.
    """
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
