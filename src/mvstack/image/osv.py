"""A database of vulnerabilities in the OSV format: a folder or a zip of JSON files, one an entry.

The format: ossf.github.io/osv-schema. What osv.dev publishes for one ecosystem (``all.zip``) is
read as it is.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from mvstack.image.extras import load
from mvstack.image.packages import Distribution, Manager
from mvstack.support.errors import InvalidInput, Missing, Problem, relative

Row = dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """A database: its entries, the newest change among them (RFC 3339, UTC) and its hash."""

    entries: list[Row]
    date: str
    sha256: str


def read(path: Path) -> Contents:
    """The database at ``path``.

    Raises Missing when there is none, InvalidInput for a file in it that is no OSV entry: one that
    cannot be read might be the one that matters.
    """
    if not path.exists():
        raise Missing("there is no such database", relative(path))
    entries, problems, digest = [], [], hashlib.sha256()
    for name, text in _files(path):
        digest.update(f"{name}\0{hashlib.sha256(text).hexdigest()}\n".encode())
        try:
            entries.append(_entry(text))
        except ValueError as error:
            problems.append(Problem(f"is no OSV entry: {error}", f"{relative(path)}: {name}"))
    if problems:
        raise InvalidInput(*problems[:10], outcome="Get the database again.")
    if not entries:
        raise Missing("there is no entry in the database", relative(path))
    return Contents(entries, max(entry["modified"] for entry in entries), digest.hexdigest())


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".json"):
                    yield name, archive.read(name)
    except (zipfile.BadZipFile, OSError) as error:
        raise InvalidInput(f"is no zip: {error}", relative(path)) from None


def _entry(text: bytes) -> Row:
    try:
        entry = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    for name in ("id", "modified"):
        if not isinstance(entry.get(name), str):
            raise ValueError(f"it has no {name}")
    rows = entry.get("affected", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("affected is no list of objects")
    return entry


def belongs(ecosystem: str, to: Distribution) -> bool:
    """Whether an OSV ecosystem such as ``Debian:12`` is that of a distribution."""
    name, _, release = ecosystem.partition(":")
    major = to.version.partition(".")[0]
    match to.id:
        case "debian":
            return name == "Debian" and release == major
        case "ubuntu":  # not Ubuntu:Pro, whose packages another archive has
            return name == "Ubuntu" and release in (to.version, f"{to.version}:LTS")
        case "almalinux":
            return name == "AlmaLinux" and release == major
        case "rocky":
            return name == "Rocky Linux" and release == major
        case "rhel":
            return name == "Red Hat" and release.startswith(f"enterprise_linux:{major}::")
    return False


def compare(manager: Manager, one: str, other: str) -> int:
    """Below zero when ``one`` is older, by the order of dpkg or of rpm. Raises ValueError.

    univers has both orders, where python-debian has Debian's alone; the tests hold it against
    dpkg and rpm themselves.
    """
    if manager == "dpkg":
        return int(load("univers.debian").compare_versions(one, other))
    return int(load("univers.rpm").compare_rpm_versions(one, other))


def affects(affected: Row, version: str, manager: Manager) -> str | None:
    """None when ``version`` is not vulnerable, else the version that mends it ("" for none yet).

    OSV's own rule: a version is affected when it is listed, or when the last event of a range at
    or before it introduces the fault.
    """
    listed = version in (affected.get("versions") or [])
    ranges = affected.get("ranges") or []
    for one in ranges:
        if one.get("type") == "ECOSYSTEM" and _in_range(one, version, manager):
            return _mended(one, version, manager)
    if listed:
        fixes = [_mended(one, version, manager) for one in ranges if one.get("type") == "ECOSYSTEM"]
        return next((fix for fix in fixes if fix), "")
    return None


def _events(one: Row, manager: Manager) -> list[tuple[str, str]]:
    """Kind and version of the events of a range, oldest first; "0" is before every version."""

    def order(a: tuple[str, str], b: tuple[str, str]) -> int:
        if "0" in (a[1], b[1]):
            return (a[1] != "0") - (b[1] != "0")
        return compare(manager, a[1], b[1])

    events = [(kind, str(at)) for event in one.get("events") or [] for kind, at in event.items()]
    return sorted(events, key=cmp_to_key(order))


def _in_range(one: Row, version: str, manager: Manager) -> bool:
    vulnerable = False
    for kind, at in _events(one, manager):
        reached = 1 if at == "0" else compare(manager, version, at)
        if kind == "introduced" and reached >= 0:
            vulnerable = True
        elif (kind in ("fixed", "limit") and reached >= 0) or (
            kind == "last_affected" and reached > 0
        ):
            vulnerable = False
    return vulnerable


def _mended(one: Row, version: str, manager: Manager) -> str:
    fixes = [at for kind, at in _events(one, manager) if kind == "fixed" and at != "0"]
    return next((at for at in fixes if compare(manager, at, version) > 0), "")
