"""Running one tool, with a limit that holds."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass

TIMEOUT = 5.0
"""Seconds a tool may take: a controller that is down makes some wait for minutes."""

LIMIT = 1 << 20
"""Bytes kept of what a tool printed."""


@dataclass(frozen=True)
class Output:
    """What a tool printed on both streams, and how it ended."""

    text: str
    status: int = 0
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool ended by itself and with success."""
        return self.status == 0 and not self.timed_out


def run(command: list[str], timeout: float = TIMEOUT) -> Output | None:
    """Run ``command``; None when it cannot be started (not executable, wrong architecture).

    The output goes to a file, not to a pipe: a grandchild that keeps a pipe open would make us
    wait for it after the limit. On the limit the whole process group is killed.
    """
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, ValueError):
            return None
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            _kill(process)
        file.seek(0)
        text = file.read(LIMIT).decode("utf-8", "replace")
    return Output(text, process.returncode, timed_out)


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.wait()
