"""One installation at a time into one root, and nothing left running from one that was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from mvstack.support.errors import Locked, Missing, Problem

# In the environment of every build process, so that a later run knows it as ours.
MARK = "MVSTACK_BUILDS_IN"
PUSHING = "it did not say who it is; `mvstack cache push` reads from here, for one"


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of ``root`` while the block runs.

    Raises Locked, saying who holds it, and Missing when the root cannot be written to.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        stream = (root / ".lock").open("a+")
    except OSError as error:
        raise Missing(
            Problem(
                f"the install root cannot be written to: {error.strerror}",
                str(root),
                todo="give another with --root or MVSTACK_ROOT, or run as the user who owns it",
            )
        ) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            raise Locked(
                Problem(
                    "another process is installing into this root",
                    str(root),
                    found=stream.read().strip() or PUSHING,
                    todo="wait until it has ended, or give another --root",
                )
            ) from None
        stream.truncate(0)
        stream.write(
            f"pid {os.getpid()} on {socket.gethostname()} since {time.strftime('%F %T %Z')}\n"
        )
        stream.flush()
        try:
            yield
        finally:
            # what takes the lock next and does not say so must not pass for this process
            stream.truncate(0)


def end_leftovers(tree: Path) -> int:
    """End build processes of a killed run that still write into ``tree``; how many there were."""
    wanted = f"{MARK}={tree}".encode()
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        if int(folder.name) == os.getpid():
            continue
        try:
            marks = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in marks:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(folder.name), signal.SIGKILL)
                found += 1
    return found
