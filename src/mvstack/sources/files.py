"""What the mirror does with single files: hash, copy, tell how they are packed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from mvstack.support.errors import InvalidInput, Problem, relative

CHUNK = 1 << 20
# The longest first, so that `.tar.gz` is not taken for `.gz`.
EXTENSIONS = (
    *("tar.gz", "tar.xz", "tar.bz2", "tar.zst", "tar.lz", "tar.Z", "tgz", "txz", "tbz2", "tar"),
    *("zip", "whl", "gz", "xz", "bz2", "sh", "rpm", "jar", "run", "patch"),
)
_MAGIC = {
    "gzip": b"\x1f\x8b",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
    "zip": b"PK\x03\x04",
}
_PACKED = {
    **dict.fromkeys(("tar.gz", "tgz", "gz"), "gzip"),
    **dict.fromkeys(("tar.xz", "txz", "xz"), "xz"),
    **dict.fromkeys(("tar.bz2", "tbz2", "bz2"), "bzip2"),
    **dict.fromkeys(("zip", "whl", "jar"), "zip"),
    "tar.zst": "zstd",
}


def extension(filename: str) -> str:
    """The part of a file's name that says how to unpack it; "" when it has none we know."""
    return next((ext for ext in EXTENSIONS if filename.endswith(f".{ext}")), "")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError when it cannot be read."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def copied(source: BinaryIO, target: BinaryIO) -> str:
    """Copy all of ``source``; the SHA-256 of what was really written."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()


def open_regular(path: Path) -> BinaryIO:
    """Open a person's file for reading; links are followed.

    Raises InvalidInput for what is no regular file: reading a FIFO would wait for ever, reading a
    device would not end.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        missing = getattr(error, "errno", 0) in (errno.ENOENT, errno.ENOTDIR)
        raise InvalidInput(
            Problem(
                "there is no such file" if missing else f"cannot be read: {why}", relative(path)
            )
        ) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidInput(
            Problem(
                "a file is expected and this is none",
                relative(path),
                todo="give the tarball itself, not a folder or a device",
            )
        )
    return os.fdopen(handle, "rb")


def packing(head: bytes) -> str:
    """How a file that begins with ``head`` is packed; "" when that cannot be told."""
    return next((name for name, magic in _MAGIC.items() if head.startswith(magic)), "")


def wrong_packing(filename: str, head: bytes) -> str:
    """Why a file beginning with ``head`` cannot be unpacked as ``filename``; "" when it can."""
    named, found = _PACKED.get(extension(filename), ""), packing(head)
    if not named or named == found:
        return ""
    return f"{filename} names a {named} file and this is {found or 'none'}"
