"""Write a file whole or not at all."""

import os
import secrets
from pathlib import Path


def sync(path: Path) -> None:
    """Have ``path`` (a file or a folder) on the disk itself before going on."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, content: str | bytes, mode: int | None = 0o644) -> None:
    """Write ``path`` whole or not at all, also when the power fails in between.

    Its permissions are ``mode``; None leaves them to the umask, as for a file of the user's own.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content if isinstance(content, bytes) else content.encode())
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            new.chmod(mode)
        new.replace(path)
    except BaseException as error:
        new.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a full disk names no file
            error.filename = str(path)
        raise
