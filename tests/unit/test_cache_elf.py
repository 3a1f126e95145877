"""What a program asks of the dynamic linker, read from its own bytes."""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.cache.elf import Linked, lacking, linked
from mvstack.cache.manifest import Needed

STRINGS = b"\0libmpi.so.12\0libm.so.6\0/a/lib:$ORIGIN/../lib\0/old\0libx.so\0"


def elf(*tags: tuple[int, str], wide: bool = True, order: str = "<") -> bytes:
    """A small ELF file: one segment with all of it, and its dynamic section."""
    head_size, segment = (64, 56) if wide else (52, 32)
    strings = head_size + 2 * segment
    dynamic = strings + len(STRINGS)
    entry = order + ("qQ" if wide else "iI")
    rows = [(5, strings), *((tag, STRINGS.index(text.encode() + b"\0")) for tag, text in tags)]
    table = b"".join(struct.pack(entry, *row) for row in [*rows, (0, 0)])
    size = dynamic + len(table)
    head = bytearray(head_size)
    head[:6] = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2])
    if wide:
        struct.pack_into(order + "Q", head, 0x20, head_size)
        struct.pack_into(order + "HH", head, 0x36, segment, 2)
        load = struct.pack(order + "IIQQQQQQ", 1, 0, 0, 0, 0, size, size, 0)
        dyn = struct.pack(order + "IIQQQQQQ", 2, 0, dynamic, dynamic, 0, len(table), 0, 0)
    else:
        struct.pack_into(order + "I", head, 0x1C, head_size)
        struct.pack_into(order + "HH", head, 0x2A, segment, 2)
        load = struct.pack(order + "IIIIIIII", 1, 0, 0, 0, size, size, 0, 0)
        dyn = struct.pack(order + "IIIIIIII", 2, dynamic, dynamic, 0, len(table), 0, 0, 0)
    return bytes(head) + load + dyn + STRINGS + table


def test_needed_and_folders_of_every_kind_of_elf() -> None:
    tags = ((1, "libmpi.so.12"), (1, "libm.so.6"), (29, "/a/lib:$ORIGIN/../lib"), (14, "libx.so"))
    wanted = Linked(("libmpi.so.12", "libm.so.6"), ("/a/lib", "$ORIGIN/../lib"), "libx.so")
    for wide in (True, False):
        for order in "<>":
            assert linked(elf(*tags, wide=wide, order=order)) == wanted


def test_an_rpath_counts_only_where_there_is_no_runpath() -> None:
    both = linked(elf((15, "/old"), (29, "/a/lib:$ORIGIN/../lib")))
    assert both is not None and "/old" not in both.folders
    alone = linked(elf((15, "/old")))
    assert alone is not None and alone.folders == ("/old",)


def test_this_very_python_needs_the_c_library() -> None:
    own = linked(Path(sys.executable).resolve().read_bytes())
    assert own is not None and any(name.startswith("libc.") for name in own.needed)


@given(st.integers(0, 400), st.binary(max_size=8))
def test_damaged_files_are_no_error(at: int, junk: bytes) -> None:
    good = elf((1, "libmpi.so.12"), (29, "/a/lib:$ORIGIN/../lib"))
    linked(good[:at])
    linked(good[:at] + junk + good[at + len(junk) :])


def test_other_files_are_not_taken_for_programs() -> None:
    assert linked(b"#!/bin/sh\n") is None
    assert linked(b"\x7fELF") is None


def test_a_library_in_a_folder_that_we_may_not_enter_is_lacking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stat = os.stat

    def refused(path: str, **more: bool) -> os.stat_result:
        if str(path).startswith("/root/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, **more)

    monkeypatch.setattr("mvstack.cache.elf.listed", list)
    monkeypatch.setattr(os, "stat", refused)
    name = "libnowhere.so.9"
    assert lacking([Needed(soname=name, found=f"/root/gcc/lib64/{name}")]) == [name]
