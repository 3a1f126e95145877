"""Package repositories: what counts of one, and the cache of Spack's indexes that fits them.

Spack keeps its indexes (tags, virtuals, patches) by namespace alone and brings one up to date by
the dates of files. A second checkout of this repository, or a bundle unpacked over an older one,
then passes for known with the index of another: packages are not found, and nothing says why. So
each content has a cache of its own.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from mvstack.support import hashes
from mvstack.support.files import sha256_of
from mvstack.tree.folder import writable

CACHE = "indexes-"
KINDS = ("providers", "tags", "patches")  # Spack's indexes: a folder each of the cache
UNUSED = 30 * 24 * 3600.0  # seconds after which a cache that nobody used is removed


def contents(folder: Path) -> list[Path]:
    """The files of a package repository from which Spack reads, in one order."""
    return sorted(
        path
        for path in [*folder.rglob("*.py"), *folder.rglob("*.patch"), folder / "repo.yaml"]
        if "__pycache__" not in path.parts and path.is_file()
    )


def cache_of(caches: Path, repositories: Mapping[str, Path]) -> Path:
    """The cache, below ``caches``, of these repositories (namespace → folder) and no others."""
    found = [
        (namespace, str(path.relative_to(folder)), sha256_of(path))
        for namespace, folder in sorted(repositories.items())
        for path in contents(folder)
    ]
    return caches / f"{CACHE}{hashes.of(found)[:16]}"


def prepare(cache: Path, pinned: Iterable[str]) -> None:
    """Make ``cache`` if it is not there, and remove its neighbours that have long not been used.

    The indexes of the ``pinned`` namespaces, whose content never changes, are taken from a
    neighbour: Spack needs more than a minute for builtin's. Raises Missing where it cannot be made.
    """
    with writable("Spack's cache cannot be written to", cache):
        cache.mkdir(parents=True, exist_ok=True)
        os.utime(cache)  # the day of its last use
    neighbours = [path for path in cache.parent.glob(f"{CACHE}*") if path != cache]
    for kind in KINDS:
        for namespace in pinned:
            pattern = f"{kind}/{namespace}-specfile_*.json"
            if not any(cache.glob(pattern)):
                found = [path for other in neighbours for path in other.glob(pattern)]
                _copy(max(found, key=_mtime, default=None), cache / kind)
    for path in neighbours:
        if _mtime(path) < time.time() - UNUSED:
            shutil.rmtree(path, ignore_errors=True)


def _copy(index: Path | None, folder: Path) -> None:
    """Copy an index whole, with its date: by that Spack knows which packages it holds."""
    # its cache may be removed meanwhile: Spack makes the index anew
    if index is not None and index.is_file():
        folder.mkdir(exist_ok=True)
        with (
            contextlib.suppress(FileNotFoundError),
            tempfile.TemporaryDirectory(dir=folder, prefix=".incoming-") as incoming,
        ):
            shutil.copy2(index, incoming)
            Path(incoming, index.name).replace(folder / index.name)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
