"""Rewrite the place where a tree was built into the place where it is installed. Pure.

In text the new path stands where the old one stood. In binaries nothing may move: the new path
must not be longer, and is filled up with slashes to the length of the old one. Slashes and not
NULs, because a compiler may have counted a string's characters, and a linker lets strings share
their ends: both hold only while every other character stays where it is. A path with several
slashes in a row names the same file (POSIX, 4.13 Pathname Resolution).
"""

import bz2
import lzma
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Where = Literal["", "text", "binary", "packed"]
# What may follow a path's end. A letter would make it another folder's name, `/apps/st` in
# `/apps/stack`; so does a dot before a letter, `/apps/st.old`.
_END = rb"(?![\w+~@=-]|\.\w)"
_ENOUGH = 1 << 28  # bytes that are unpacked at most when looking into a packed file


@dataclass(frozen=True)
class Move:
    """From the tree ``old`` to the tree ``new``, both absolute paths without a slash at the end."""

    old: str
    new: str

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(re.escape(self.old.encode()) + _END)

    @property
    def needed(self) -> bool:
        """Whether anything has to be rewritten at all."""
        return self.old != self.new

    @property
    def fits_binaries(self) -> bool:
        """Whether the new path can stand where the old one stood in a binary."""
        return len(self.new.encode()) <= len(self.old.encode())

    def where(self, content: bytes) -> Where:
        """How the old path occurs in a file: not at all, in text, in a binary, in packed data."""
        if inner := unpacked(content):  # first: what does not compress is stored as it is
            return "packed" if self._pattern.search(inner) else ""
        if self._pattern.search(content):
            return "binary" if b"\0" in content else "text"
        return ""

    def text(self, content: bytes) -> bytes:
        """``content`` with the new path; its length may change."""
        new = self.new.encode()
        return self._pattern.sub(lambda _: new, content)

    def binary(self, content: bytes) -> bytes:
        """``content`` with the new path and of the same length. ValueError when it is too long."""
        if not self.fits_binaries:
            raise ValueError(f"{self.new} is longer than {self.old}")
        filled = self.new.encode().ljust(len(self.old.encode()), b"/")
        return self._pattern.sub(lambda _: filled, content)

    def moved(self, content: bytes) -> bytes:
        """``content`` of a file as it must be in the new tree. ValueError as :meth:`binary`."""
        kind = self.where(content) if self.needed else ""
        made = {"text": self.text, "binary": self.binary}
        return made[kind](content) if kind in made else content


def unpacked(content: bytes) -> bytes:
    """What a gzip, xz or bzip2 file holds (at most 256 MB of it); b"" for everything else."""
    try:
        if content.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(content, _ENOUGH)
        if content.startswith(b"\xfd7zXZ\0"):
            return lzma.LZMADecompressor().decompress(content, _ENOUGH)
        if content.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(content, _ENOUGH)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError):
        pass  # it only began like one
    return b""
