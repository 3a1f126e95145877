"""The manifest of an image: every path with its mode, owner and hash, and how two of them differ.

One line is one path:

    /usr/bin/ping file 0755 0:0 90568 4e1b… security.capability=0100…

Times are left out: they differ between any two builds and tell nothing of what is in a file.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints

from mvstack.image.globs import matcher
from mvstack.image.walk import Node, unreadable, walk
from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import InvalidInput, Missing, relative
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA

HEAD = "# mvapich-stack image manifest 1: path type mode owner size content [attribute=hex ...]"
DECLARED = DATA / "images" / "not-reproducible.yaml"
Kind = Literal["file", "folder", "link", "character", "block", "pipe", "socket"]
_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFCHR: "character",
    stat.S_IFBLK: "block",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}
_LINE = re.compile(
    r"(?P<path>/\S*) (?P<kind>[a-z]+) (?P<mode>[0-7]{4}) (?P<uid>\d+):(?P<gid>\d+)"
    r" (?P<size>\d+|-) (?P<content>\S+)(?P<attributes>(?: \S+=[0-9a-f]*)*)"
)
_PLAIN = re.compile(rb"[!-\[\]-~]")  # printable ASCII without the space and the backslash
_CODED = re.compile(rb"\\([0-3][0-7]{2})|\\|[^\\]")


@dataclass(frozen=True)
class Entry:
    """One path of an image.

    ``size`` in bytes, of files alone. ``content`` is the SHA-256 of a file, the target of a link,
    ``major:minor`` of a device and empty for the rest. ``attributes`` are extended attributes (file
    capabilities are one) as pairs of name and hexadecimal value.
    """

    path: str
    kind: Kind
    mode: int
    uid: int
    gid: int
    size: int = 0
    content: str = ""
    attributes: tuple[tuple[str, str], ...] = ()

    def line(self) -> str:
        """The entry as its line of the manifest."""
        size = str(self.size) if self.kind == "file" else "-"
        fields = [
            escaped(self.path),
            self.kind,
            f"{self.mode:04o}",
            f"{self.uid}:{self.gid}",
            size,
            escaped(self.content) or "-",
            *(f"{escaped(name)}={value}" for name, value in self.attributes),
        ]
        return " ".join(fields)


class Declared(Strict):
    """A pattern of paths that may differ between two builds from the same inputs, and why."""

    path: Annotated[str, StringConstraints(pattern=r"^/\S+$")]
    why: Annotated[str, StringConstraints(min_length=10)]


class _File(Strict):
    not_reproducible: list[Declared] = EMPTY_LIST


@dataclass(frozen=True)
class Difference:
    """One path that differs, or one declared pattern that is no longer needed.

    ``what`` in words; ``first`` and ``second`` are the two lines, "" where there is none; ``why``
    the declared reason. ``fails`` unless the difference was declared.
    """

    path: str
    what: str
    first: str = ""
    second: str = ""
    why: str = ""
    fails: bool = True


def escaped(text: str) -> str:
    r"""``text`` in printable ASCII without spaces: other bytes are ``\`` and three octal digits.

    A name on disk is bytes; which of them are letters depends on who looks, these digits do not.
    """
    return "".join(
        chr(one) if _PLAIN.match(bytes([one])) else f"\\{one:03o}" for one in os.fsencode(text)
    )


def unescaped(text: str) -> str:
    """What :func:`escaped` was given. Raises ValueError for what it never returns."""
    found = b""
    for match in _CODED.finditer(text.encode("ascii")):
        if match[0] == b"\\":
            raise ValueError(f"{text!r}: a backslash without three octal digits")
        found += bytes([int(match[1], 8)]) if match[1] else match[0]
    return os.fsdecode(found)


def collect(root: Path) -> list[Entry]:
    """Every path of the file tree ``root``, sorted by the bytes of its name.

    Raises Missing for what cannot be read.
    """
    hashes: dict[tuple[int, int], str] = {}  # a file of several names is read once
    entries = [_entry(node, hashes) for node in walk(root)]
    return sorted(entries, key=lambda entry: os.fsencode(entry.path))


def _entry(node: Node, hashes: dict[tuple[int, int], str]) -> Entry:
    status = node.status
    kind = _KINDS[stat.S_IFMT(status.st_mode)]
    content, size = "", 0
    if kind == "file":
        place = (status.st_dev, status.st_ino)
        content = hashes[place] = hashes.get(place) or _sha256(node)
        size = status.st_size
    elif kind == "link":
        content = os.readlink(node.here)  # noqa: PTH115 - it may not be text
    elif kind in ("character", "block"):
        content = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    attributes = tuple((name, value.hex()) for name, value in node.attributes().items())
    mode = stat.S_IMODE(status.st_mode)
    return Entry(node.path, kind, mode, status.st_uid, status.st_gid, size, content, attributes)


def _sha256(node: Node) -> str:
    try:
        with open(node.here, "rb") as stream:  # noqa: PTH123 - its path may not be text
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(node.path, error) from None


def write(entries: Iterable[Entry], path: Path) -> None:
    """Write manifest.txt."""
    write_atomically(path, "\n".join([HEAD, *(entry.line() for entry in entries)]) + "\n")


def read(path: Path) -> list[Entry]:
    """The entries of a manifest.txt. Raises Missing when it cannot be read, InvalidInput else."""
    try:
        lines = path.read_text(encoding="ascii").split("\n")
    except OSError as error:
        raise Missing(f"cannot be read: {error.strerror}", relative(path)) from None
    except UnicodeDecodeError:
        raise InvalidInput("is no manifest: it is not ASCII", relative(path)) from None
    if lines[0] != HEAD or lines[-1] != "":
        raise InvalidInput(
            "is no whole manifest of this version",
            relative(path),
            found=lines[0][:80],
            allowed=f"{HEAD}, and a line break at the end",
        )
    return [_parsed(line, f"{relative(path)}:{n}") for n, line in enumerate(lines[1:-1], start=2)]


def _parsed(line: str, where: str) -> Entry:
    match = _LINE.fullmatch(line)
    kind = next((kind for kind in _KINDS.values() if match and match["kind"] == kind), None)
    if match is None or kind is None:
        raise InvalidInput("is no line of a manifest", where, found=line[:80])
    try:
        attributes = [one.rpartition("=") for one in match["attributes"].split()]
        return Entry(
            unescaped(match["path"]),
            kind,
            int(match["mode"], 8),
            int(match["uid"]),
            int(match["gid"]),
            0 if match["size"] == "-" else int(match["size"]),
            "" if match["content"] == "-" and kind != "link" else unescaped(match["content"]),
            tuple((unescaped(name), value) for name, _, value in attributes),
        )
    except ValueError as error:
        raise InvalidInput(f"is no line of a manifest: {error}", where) from None


def read_declared(path: Path = DECLARED) -> list[Declared]:
    """images/not-reproducible.yaml. Raises InvalidInput with every error of it."""
    return validated(_File, read_yaml(path)).not_reproducible


def compare(
    first: Iterable[Entry], second: Iterable[Entry], declared: Sequence[Declared] = ()
) -> list[Difference]:
    """How the image ``second`` differs from ``first``, built from the same inputs; [] for nowhere.

    What ``declared`` covers is listed with its reason and does not fail. A declared pattern that no
    path of either image matches fails: the list must not grow old. One whose paths happen to be the
    same this time is listed and does not fail.
    """
    one = {entry.path: entry for entry in first}
    two = {entry.path: entry for entry in second}
    found: list[Difference] = []
    used: set[str] = set()
    for path in sorted({*one, *two}, key=os.fsencode):
        what = _what(one.get(path), two.get(path))
        if not what:
            continue
        fitting = [row for row in declared if matcher(row.path).fullmatch(path)]
        used.update(row.path for row in fitting)
        before, after = (side[path].line() if path in side else "" for side in (one, two))
        why = fitting[0].why if fitting else ""
        found.append(Difference(path, what, before, after, why, fails=not fitting))
    return found + [_unused(row, {*one, *two}) for row in declared if row.path not in used]


def _what(one: Entry | None, two: Entry | None) -> str:
    if one is None or two is None:
        return "is in the second alone" if one is None else "is in the first alone"
    if one.kind != two.kind:
        return f"is a {one.kind} in the first and a {two.kind} in the second"
    differs = {
        "content": (one.content, one.size) != (two.content, two.size),
        "mode": one.mode != two.mode,
        "owner": (one.uid, one.gid) != (two.uid, two.gid),
        "attributes": one.attributes != two.attributes,
    }
    words = [name for name, differing in differs.items() if differing]
    return f"differs in {', '.join(words)}" if words else ""


def _unused(row: Declared, paths: set[str]) -> Difference:
    there = any(matcher(row.path).fullmatch(path) for path in paths)
    what = "is declared, and was the same" if there else "is declared, and no path matches it"
    return Difference(row.path, what, why=row.why, fails=not there)
