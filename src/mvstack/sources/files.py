"""What the mirror does with single files: hash, open, tell their extension."""

import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from mvstack.support.errors import InvalidInput, relative

# The longest first, so that `.tar.gz` is not taken for `.gz`.
EXTENSIONS = (
    *("tar.gz", "tar.xz", "tar.bz2", "tar.zst", "tar.lz", "tar.Z", "tgz", "txz", "tbz2", "tar"),
    *("zip", "whl", "gz", "xz", "bz2", "sh", "rpm", "jar", "run", "patch"),
)


def extension(filename: str) -> str:
    """The part of a file's name that says how to unpack it; "" when it has none we know."""
    return next((ext for ext in EXTENSIONS if filename.endswith(f".{ext}")), "")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError when it cannot be read."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def open_regular(path: Path) -> BinaryIO:
    """Open a person's file. Raises InvalidInput for a FIFO or device: reading it would not end."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput("there is no such file", relative(path)) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot be read: {why}", relative(path)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        todo = "give the tarball itself, not a folder or a device"
        raise InvalidInput("this is not a regular file", relative(path), todo=todo)
    return os.fdopen(handle, "rb")
