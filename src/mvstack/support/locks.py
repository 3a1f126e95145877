"""Locks between processes: one file each, held while a block runs, saying who holds it.

They are `flock`'s, which the kernel gives back when a process dies, and which hold over NFS.
"""

import contextlib
import fcntl
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mvstack.support.units import one_line

_LONGEST = 300  # characters of a holder's line


class Held(Exception):
    """Another process holds the lock; ``holder`` says which, "" when it left no name."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


@contextlib.contextmanager
def hold(
    file: Path, *, wait: bool = True, waiting: Callable[[str], object] = lambda _: None
) -> Iterator[None]:
    """Hold the lock of ``file``, which is made with its folder, while the block runs.

    When another process holds it: with ``wait`` this waits, after telling ``waiting`` who that is;
    else it raises Held. Raises OSError when the file cannot be written.
    """
    from filelock import FileLock, Timeout  # here: a tenth of a second of every command's start

    file.parent.mkdir(parents=True, exist_ok=True)
    handles: list[int] = []
    lock = FileLock(file, on_acquired=handles.append)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if not wait:
                raise Held(holder(file)) from None
            waiting(holder(file))
            lock.acquire()
        _write(handles[0], _ourselves())
        yield
    finally:
        if lock.is_locked:
            _write(handles[0], "")  # who takes it next without a name must not pass for us
            lock.release()


@contextlib.contextmanager
def share(file: Path) -> Iterator[None]:
    """Keep others from holding the lock while the block runs; raises Held when one does.

    The file is only read, for it may belong to somebody else; filelock would write to it. One
    that is missing or cannot be read is no lock: nobody has ever held it, or nobody lets us know.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            stream = stack.enter_context(file.open("rb"))
            try:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Held(holder(file)) from None
        yield


def is_held(file: Path) -> bool:
    """Whether a process holds the lock of ``file``, which is not written to."""
    try:
        with share(file):
            return False
    except Held:
        return True


def holder(file: Path) -> str:
    """Who holds the lock, as it said itself; "" when it did not."""
    try:
        return one_line(file.read_text(errors="replace"), _LONGEST)
    except OSError:
        return ""


def _ourselves() -> str:
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    if words[0] == "__main__.py":
        words[0] = "mvstack"
    said = f"pid {os.getpid()} on {socket.gethostname()} since {time.strftime('%F %T %Z')}: "
    return one_line(said + shlex.join(words), _LONGEST) + "\n"


def _write(handle: int, text: str) -> None:
    with contextlib.suppress(OSError):  # a full disk does not undo the lock
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode("utf-8", "replace"), 0)
