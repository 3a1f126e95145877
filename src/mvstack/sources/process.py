"""Run apt and pip so that they end when we do, and tell what they said when they fail."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL = 0.1  # seconds between two looks at how far it is


def run(
    command: Sequence[str],
    folder: Path,
    limit: float,
    environment: Mapping[str, str] | None = None,
    look: Callable[[], None] | None = None,
) -> tuple[int, str]:
    """Run ``command`` in ``folder``; its exit code and all it printed (both streams).

    ``look`` is called while it runs. After ``limit`` seconds it is ended and the code is 124.
    Whatever ends the wait (Ctrl-C, an error in ``look``) ends the process too.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})},
        )
        began = time.monotonic()
        try:
            while (code := process.poll()) is None:
                if time.monotonic() - began > limit:
                    code = 124
                    break
                if look:
                    look()
                time.sleep(POLL)
        finally:
            _end(process)
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
