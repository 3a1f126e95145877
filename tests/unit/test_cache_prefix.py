"""The path of a tree, rewritten in text and in binaries."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.cache.prefix import Move

OLD, NEW = "/opt/stack/2026.11/local", "/apps/2026.11/local"


@pytest.mark.parametrize("before", [b"", b"-L", b"rpath=", b"file://", b'"', b":", b"x=/a:"])
@pytest.mark.parametrize("after", [b"", b"/lib", b'"', b":/usr", b" ", b".", b".\n", b",", b"\n"])
def test_a_path_is_found_wherever_it_may_stand(before: bytes, after: bytes) -> None:
    text = before + OLD.encode() + after
    assert Move(OLD, NEW).where(text) == "text"
    assert Move(OLD, NEW).text(text) == before + NEW.encode() + after


@pytest.mark.parametrize("after", ["2", "-old", "_x", ".old", "~", "+", "@a", "=x"])
def test_another_folder_that_begins_the_same_is_left_alone(after: str) -> None:
    text = f"{OLD}{after}/lib".encode()
    assert Move(OLD, NEW).where(text) == ""
    assert Move(OLD, NEW).text(text) == text


def test_a_longer_path_fits_into_text_and_not_into_a_binary() -> None:
    move = Move(NEW, OLD)
    assert move.text(f"a {NEW}/x".encode()) == f"a {OLD}/x".encode()
    assert not move.fits_binaries
    with pytest.raises(ValueError, match="is longer than"):
        move.binary(f"\0{NEW}\0".encode())


def test_a_replacement_is_no_pattern() -> None:
    assert Move("/a/b", r"/\1\g<0>").text(b"/a/b/c") == rb"/\1\g<0>/c"
    assert Move("/a.b", "/c").text(b"/axb") == b"/axb"


@given(st.binary(), st.binary())
def test_in_a_binary_nothing_moves(before: bytes, after: bytes) -> None:
    content = before + b"\0" + OLD.encode() + b"/lib\0" + after
    found = Move(OLD, NEW).binary(content)
    assert len(found) == len(content)
    start = len(before) + 1
    string = found[start : found.index(b"\0", start)].decode()
    assert string.rstrip("/") != string or string.endswith("/lib")
    assert string.replace("//", "/").replace("//", "/").replace("//", "/") == f"{NEW}/lib"
    assert len(string) == len(f"{OLD}/lib")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files_are_looked_into(pack: object) -> None:
    assert callable(pack)
    assert Move(OLD, NEW).where(pack(f"made in {OLD}/x".encode())) == "packed"
    assert Move(OLD, NEW).where(pack(b"made elsewhere")) == ""


@given(st.sampled_from([b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh"]), st.binary())
def test_what_only_begins_like_a_packed_file_is_no_error(head: bytes, rest: bytes) -> None:
    assert Move(OLD, NEW).where(head + rest) == ""
