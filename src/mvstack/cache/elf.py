"""What an ELF file asks of the dynamic linker: libraries by name, and where to look for them. Pure.

Read here and not with readelf, which comes with the compilers that a machine that installs from a
cache need not have. Layout after the System V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 1, 5, 14, 15, 29
_LOAD, _DYNAMIC = 1, 2


@dataclass(frozen=True)
class Linked:
    """The dynamic section: NEEDED names, RPATH or RUNPATH folders, and the file's own SONAME."""

    needed: tuple[str, ...]
    folders: tuple[str, ...]
    soname: str


def linked(content: bytes) -> Linked | None:
    """The dynamic section of an ELF file; None for other files and for static ones."""
    try:
        return _linked(content)
    except (struct.error, IndexError, OverflowError):  # cut short, or not what its first bytes say
        return None


def _linked(content: bytes) -> Linked | None:
    if content[:4] != b"\x7fELF" or content[4] not in (1, 2) or content[5] not in (1, 2):
        return None
    wide, order = content[4] == 2, "<" if content[5] == 1 else ">"
    segments = list(_segments(content, wide, order))
    dynamic = next((one for one in segments if one[0] == _DYNAMIC), None)
    if dynamic is None:
        return None
    entry = struct.Struct(order + ("qQ" if wide else "iI"))
    _, offset, _, size = dynamic
    table: list[tuple[int, int]] = []
    for at in range(offset, offset + size - entry.size + 1, entry.size):
        tag, value = entry.unpack_from(content, at)
        if tag == 0:
            break
        table.append((tag, value))
    address = next((value for tag, value in table if tag == _STRTAB), None)
    if address is None:
        return None
    strings = _file_offset(address, segments)

    def text(value: int) -> str:
        start = strings + value
        return content[start : content.index(b"\0", start)].decode("utf-8", "replace")

    def texts(*tags: int) -> list[str]:
        try:
            return [text(value) for tag, value in table if tag in tags]
        except ValueError:  # a string without an end
            return []

    folders = texts(_RUNPATH) or texts(_RPATH)  # the linker ignores RPATH where RUNPATH is
    return Linked(
        tuple(texts(_NEEDED)),
        tuple(one for text in folders for one in text.split(":") if one),
        next(iter(texts(_SONAME)), ""),
    )


def _segments(content: bytes, wide: bool, order: str) -> list[tuple[int, int, int, int]]:
    """Type, offset in the file, address and size in the file of each segment."""
    if wide:
        (start,) = struct.unpack_from(order + "Q", content, 0x20)
        size, count = struct.unpack_from(order + "HH", content, 0x36)
    else:
        (start,) = struct.unpack_from(order + "I", content, 0x1C)
        size, count = struct.unpack_from(order + "HH", content, 0x2A)
    found = []
    for at in range(start, start + size * count, size or 1):
        if wide:
            kind, _, offset, address, _, length = struct.unpack_from(order + "IIQQQQ", content, at)
        else:
            kind, offset, address, _, length = struct.unpack_from(order + "IIIII", content, at)
        found.append((kind, offset, address, length))
    return found


def _file_offset(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    for kind, offset, start, length in segments:
        if kind == _LOAD and start <= address < start + length:
            return offset + address - start
    return address
