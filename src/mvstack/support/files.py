"""Write a file whole or not at all; read what a person wrote; hash and open files."""

import ast
import hashlib
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from mvstack.support.errors import InvalidInput, relative


def sync(path: Path) -> None:
    """Have ``path`` (a file or a folder) on the disk itself before going on."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def full(path: Path | str) -> Path:
    """``path`` as typed, from / and without ~ and ..; links stay, as automounts need.

    But those before a .. do not, for it leads to what is above their target.
    """
    # bash leaves the ~ of --root=~/x to us
    parts = Path(os.path.expanduser(path)).absolute().parts  # noqa: PTH111
    up = max(at for at, part in enumerate(parts) if part in ("..", parts[0]))
    return Path(*parts[: up + 1]).resolve().joinpath(*parts[up + 1 :])


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
        with suppress(OSError):  # a disk that is read-only says so of a file that is not there
            new.unlink()
        if isinstance(error, OSError):  # a full disk names no file
            error.filename = str(path)
        raise


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of ``path``. Raises InvalidInput where it cannot be read or is not UTF-8."""
    try:
        return path.read_text("utf-8", errors)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", relative(path)) from None
    except UnicodeDecodeError as error:
        raise not_text(error, path) from None


def not_text(error: UnicodeDecodeError, path: Path) -> InvalidInput:
    """What is wrong with the file ``path``, which is not UTF-8."""
    line = error.object.count(b"\n", 0, error.start) + 1
    what = f"is not UTF-8 text: {error.reason} at byte {error.start}"
    return InvalidInput(what, f"{relative(path)}:{line}", todo="save it as plain text in UTF-8")


def read_python(path: Path) -> ast.Module:
    """The Python in ``path``, which is not run. Raises InvalidInput as :func:`read_text` does."""
    try:
        return ast.parse(read_text(path), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput(
            f"not valid Python: {getattr(error, 'msg', error)}",
            f"{relative(path)}:{line}",
            todo="correct that line",
        ) from None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError when it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> BinaryIO:
    """Open a person's file. Raises InvalidInput for a FIFO or device: reading it would not end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        todo = "check its name, and the folder that you are in"
        raise InvalidInput("there is no such file", relative(path), todo=todo) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot be read: {why}", relative(path)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        todo = "give the file itself, not a folder or a device"
        raise InvalidInput("this is not a regular file", relative(path), todo=todo)
    return os.fdopen(handle, "rb")
