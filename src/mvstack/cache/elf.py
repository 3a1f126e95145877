"""What an ELF file asks of the dynamic linker: libraries by name, and where to look for them. Pure.

With pyelftools and not readelf, which comes with compilers: a machine that installs from a cache
need not have any.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any


@dataclass(frozen=True)
class Linked:
    """The dynamic section: NEEDED names, RPATH or RUNPATH folders, and the file's own SONAME."""

    needed: tuple[str, ...]
    folders: tuple[str, ...]
    soname: str


def linked(content: bytes) -> Linked | None:
    """The dynamic section of an ELF file; None for other files and for static ones."""
    # here, for the start-up time of every command
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile

    try:
        segments = ELFFile(BytesIO(content)).iter_segments("PT_DYNAMIC")
        dynamic = next((one for one in segments if isinstance(one, DynamicSegment)), None)
        tags: list[Any] = list(dynamic.iter_tags()) if dynamic else []
    except Exception:  # pyelftools raises whatever it stumbles over in a file that is cut short
        return None
    if not tags:
        return None
    # the linker ignores RPATH where RUNPATH is
    paths = [one.runpath for one in tags if one.entry.d_tag == "DT_RUNPATH"]
    paths = paths or [one.rpath for one in tags if one.entry.d_tag == "DT_RPATH"]
    return Linked(
        tuple(one.needed for one in tags if one.entry.d_tag == "DT_NEEDED"),
        tuple(folder for path in paths for folder in path.split(":") if folder),
        next((one.soname for one in tags if one.entry.d_tag == "DT_SONAME"), ""),
    )
