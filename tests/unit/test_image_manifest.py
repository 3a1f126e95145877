"""The manifest: what is in an image, line by line, and how two builds of it differ."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_tree import debian, put

from mvstack.image import manifest
from mvstack.image.globs import matcher
from mvstack.image.manifest import Declared, Entry
from mvstack.support.errors import InvalidInput, Missing

NAMES = st.binary(min_size=1, max_size=30).map(os.fsdecode)
ENTRIES = st.builds(
    Entry,
    path=NAMES.map(lambda name: f"/{name}"),
    kind=st.sampled_from(["file", "link", "folder", "block"]),
    mode=st.integers(0, 0o7777),
    uid=st.integers(0, 2**32 - 1),
    gid=st.integers(0, 2**32 - 1),
    attributes=st.lists(st.tuples(NAMES, st.binary(max_size=4).map(bytes.hex)), max_size=2).map(
        tuple
    ),
)


@given(NAMES)
def test_a_name_of_any_bytes_comes_back_from_its_escape(name: str) -> None:
    text = manifest.escaped(name)
    assert text.isascii() and text.isprintable() and " " not in text
    assert manifest.unescaped(text) == name


@given(ENTRIES, NAMES, st.integers(0, 2**63))
def test_an_entry_comes_back_from_its_line(entry: Entry, content: str, size: int) -> None:
    fitting = {"file": {"content": "0" * 64, "size": size}, "link": {"content": content}}
    entry = replace(entry, **fitting.get(entry.kind, {}))
    assert manifest._parsed(entry.line(), "here:1") == entry


@given(st.text(max_size=120))
def test_a_line_of_anything_is_read_or_refused_with_its_place(line: str) -> None:
    try:
        assert manifest._parsed(line, "here:7").line()
    except InvalidInput as error:
        assert error.problems[0].where == "here:7"


def test_every_kind_of_path_is_collected_in_order(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root, "/usr/b", "hello", 0o4755)
    put(root, "/usr/a b\nc\\ü", "")
    os.link(root / "usr/b", root / "usr/c")
    (root / "l").symlink_to("/usr/b")
    (root / "dash").symlink_to("-")
    os.mkfifo(root / "p", 0o600)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))
    entries = manifest.collect(root)
    assert [entry.path for entry in entries] == [
        *("/", "/dash", "/l", "/p", "/s", "/usr", "/usr/a b\nc\\ü", "/usr/b", "/usr/c"),
    ]
    assert [entry.kind for entry in entries] == [
        *("folder", "link", "link", "pipe", "socket", "folder", "file", "file", "file"),
    ]
    of = {entry.path: entry for entry in entries}
    hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    owner = f"{os.getuid()}:{os.getgid()}"
    assert of["/usr/b"].line() == f"/usr/b file 4755 {owner} 5 {hello}"
    assert of["/usr/c"].content == hello
    assert of["/l"].content == "/usr/b"  # not followed
    assert "\\012" in of["/usr/a b\nc\\ü"].line() and "\\040" in of["/usr/a b\nc\\ü"].line()
    file = tmp_path / "manifest.txt"
    manifest.write(entries, file)
    assert manifest.read(file) == entries


def test_times_are_no_part_of_it(tmp_path: Path) -> None:
    file = put(tmp_path, "/a", "x")
    before = manifest.collect(tmp_path)
    os.utime(file, (1, 1))
    os.utime(tmp_path, (1, 1))
    assert manifest.collect(tmp_path) == before


def test_extended_attributes_are_part_of_it(tmp_path: Path) -> None:
    file = put(tmp_path, "/a", "x")
    try:
        os.setxattr(file, "user.note", b"\x01\xff")
    except OSError as error:
        pytest.skip(f"the file system has no extended attributes: {error}")
    entry = manifest.collect(tmp_path)[1]
    assert entry.attributes == (("user.note", "01ff"),)
    assert entry.line().endswith(" user.note=01ff")


def test_a_broken_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Missing):
        manifest.read(tmp_path / "none")
    whole = "\n".join([manifest.HEAD, "/ folder 0755 0:0 - -", ""])
    for text in ("", "x", whole[:-1], whole.replace("0:0", "0"), whole.replace("folder", "dir")):
        with pytest.raises(InvalidInput):
            manifest.read(put(tmp_path, "manifest.txt", text))
    assert len(manifest.read(put(tmp_path, "manifest.txt", whole))) == 1


def test_two_builds_are_compared(tmp_path: Path) -> None:
    roots = [debian(tmp_path / name) for name in ("one", "two")]
    first, same = map(manifest.collect, roots)
    assert manifest.compare(first, same) == []
    put(roots[1], "/etc/passwd", "changed")
    put(roots[1], "/usr/bin/su", "setuid", 0o755)
    put(roots[1], "/boot/initrd.img-6.1", "packed")
    (roots[1] / "etc/shadow").unlink()
    (roots[1] / "etc/machine-id").unlink()
    (roots[1] / "etc/machine-id").mkdir()
    declared = [
        Declared(path="/boot/**", why="packed with the times of the build"),
        Declared(path="/etc/os-release", why="may differ and does not"),
        Declared(path="/etc/nothing*", why="this pattern has grown old"),
    ]
    found = {one.path: one for one in manifest.compare(first, manifest.collect(roots[1]), declared)}
    assert {path: (one.what, one.fails) for path, one in found.items()} == {
        "/boot": ("is in the second alone", True),
        "/boot/initrd.img-6.1": ("is in the second alone", False),
        "/etc/machine-id": ("is a file in the first and a folder in the second", True),
        "/etc/passwd": ("differs in content", True),
        "/etc/shadow": ("is in the first alone", True),
        "/usr/bin/su": ("differs in mode", True),
        "/etc/os-release": ("is declared, and was the same", False),
        "/etc/nothing*": ("is declared, and no path matches it", True),
    }
    assert found["/boot/initrd.img-6.1"].why == declared[0].why
    assert found["/usr/bin/su"].first.split()[2] == "4755"


def test_what_is_declared_in_the_repository_is_well_formed(tmp_path: Path) -> None:
    assert all(row.path.startswith("/") for row in manifest.read_declared())
    with pytest.raises(InvalidInput, match="not_reproducibel"):
        manifest.read_declared(put(tmp_path, "x.yaml", "not_reproducibel: []\n"))
    with pytest.raises(InvalidInput, match="why: this field must be given"):
        manifest.read_declared(put(tmp_path, "x.yaml", "not_reproducible:\n  - path: /a\n"))


@pytest.mark.parametrize(
    ("pattern", "matched", "other"),
    [
        ("/var/log/**", ["/var/log/a", "/var/log/a/b"], ["/var/log", "/var/logs/a"]),
        ("/**/.ssh/*", ["/.ssh/a", "/root/.ssh/a", "/a/b/.ssh/a"], ["/x.ssh/a", "/.ssh/a/b"]),
        ("/boot/initrd.img-*", ["/boot/initrd.img-6"], ["/boot/initrdximg-6", "/boot/initrd.img"]),
        ("/swap?", ["/swap1"], ["/swap", "/swap12", "/swap/"]),
        ("/a*", ["/a", "/a\nb"], ["/a/b"]),
    ],
)
def test_patterns_of_paths(pattern: str, matched: list[str], other: list[str]) -> None:
    assert all(matcher(pattern).fullmatch(path) for path in matched)
    assert not any(matcher(pattern).fullmatch(path) for path in other)
