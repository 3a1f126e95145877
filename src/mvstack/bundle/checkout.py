"""This very checkout as one archive: what is tracked, and what git would track."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from mvstack.cache.pack import packed
from mvstack.support.errors import Refused
from mvstack.support.git import told
from mvstack.support.home import checkout

# What a checkout without git holds beside its own files.
_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
_MADE = {".git", ".venv", *_CACHES}


def archive(target: Path) -> tuple[str, int]:
    """Write this checkout into ``target``, the same bytes for the same files.

    Which commit it is ("" without git), and how many files differ from it. Not `git archive`: what
    is planned here is planned with the files as they are, committed or not.
    """
    top = checkout("mvstack bundle")
    files = sorted(_files(top))
    if not files:
        raise Refused("this checkout has no files", str(top))
    with packed(target) as tar:
        for name in files:
            tar.add(top / name, name, recursive=False, filter=_plain)
    changed = told(top, "status", "--porcelain").splitlines()
    return told(top, "rev-parse", "HEAD").strip(), len(changed)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry as it would be of anybody's checkout; None for what is no file."""
    mode = 0o755 if entry.mode & 0o100 else 0o644
    plain = entry.replace(mtime=0, mode=mode, uid=0, gid=0, uname="", gname="", deep=False)
    return plain if entry.isfile() or entry.issym() or entry.islnk() else None


def _files(top: Path) -> Iterator[str]:
    listed = told(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed:
        yield from (name for name in listed.split("\0") if name and os.path.lexists(top / name))
        return
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in _MADE]
        yield from (str((Path(folder) / name).relative_to(top)) for name in names)
