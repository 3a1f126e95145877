"""What programs ask of the dynamic linker, and whether this machine has it.

With pyelftools and not readelf, which comes with compilers: a machine that installs from a cache
need not have any.
"""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from mvstack.cache.manifest import Needed
from mvstack.support.processes import run

# The dynamic linker's own folders beside those of ldconfig's list.
_DEFAULT = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


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


def lacking(needs: Iterable[Needed]) -> list[str]:
    """The libraries that are neither where the builder had them nor known to the linker here."""
    known = {name for name, _ in listed()}
    return sorted(
        one.soname
        for one in needs
        if one.soname not in known
        and not (one.found and os.access(one.found, os.R_OK))
        and not any(Path(folder, one.soname).is_file() for folder in _DEFAULT)
    )


def listed() -> list[tuple[str, str]]:
    """Name and path of each library in ldconfig's cache; none where there is no ldconfig."""
    program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if program is None:
        return []
    return re.findall(r"^\s*(\S+) .*=> (\S+)$", run([program, "-p"]).text, re.M)
