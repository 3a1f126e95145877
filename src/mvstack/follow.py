"""Run one program in a session of its own, hand on its lines as they come, leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

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
    included, ends the program and all that it started; if we die without a word the kernel ends it.
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


def _die_with_parent() -> None:
    """Ask the kernel to end the program when mvstack itself is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
