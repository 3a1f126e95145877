"""This very checkout as one archive: what is tracked, and what git would track."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.support.errors import Refused
from mvstack.support.home import checkout
from mvstack.support.processes import run

# What a checkout without git holds beside its own files.
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
_MADE = {".git", ".venv", *_CACHES}


@dataclass(frozen=True)
class Checkout:
    """Which commit it is ("" without git), and how many files differ from it."""

    commit: str
    changed: int


def archive(target: Path, top: Path | None = None) -> Checkout:
    """Write ``top`` into the archive ``target``, the same bytes for the same files.

    Not `git archive`: what is planned here is planned with the files as they are, committed or not.
    """
    top = top or checkout("mvstack bundle")
    files = sorted(_files(top))
    if not files:
        raise Refused("this checkout has no files", str(top))
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in files:
            tar.add(top / name, name, recursive=False, filter=_plain)
    commit = _git(top, "rev-parse", "HEAD").strip()
    return Checkout(commit, len(_git(top, "status", "--porcelain").splitlines()))


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry as it would be of anybody's checkout; None for what is no file."""
    mode = 0o755 if entry.mode & 0o100 else 0o644
    plain = entry.replace(mtime=0, mode=mode, uid=0, gid=0, uname="", gname="", deep=False)
    return plain if entry.isfile() or entry.issym() or entry.islnk() else None


def _files(top: Path) -> Iterator[str]:
    listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed:
        yield from (name for name in listed.split("\0") if name and os.path.lexists(top / name))
        return
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in _MADE]
        yield from (str((Path(folder) / name).relative_to(top)) for name in names)


def _git(top: Path, *words: str) -> str:
    """What git says of this checkout; "" where there is no git, or it is not a clone."""
    command = ["git", "-c", "safe.directory=*", "-C", str(top)]
    try:
        own = run([*command, "rev-parse", "--show-prefix"])
        if not own.ok or own.text.strip():
            return ""  # no repository, or a folder inside of another
        done = run([*command, *words])
    except OSError:
        return ""
    return done.text if done.ok else ""
