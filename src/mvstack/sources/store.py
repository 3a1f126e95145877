"""The mirror on disk: content-addressed as Spack does it, with EasyBuild's layout as links.

    <root>/_source-cache/archive/ab/abcd….tar.gz     the files, named by their SHA-256
    <root>/easybuild/m/MPICH/mpich-4.0.2.tar.gz      relative links to them
    <root>/index.json                                what each is and where it came from, for people

A file appears under its final name by one rename, after it was written, hashed and synced. The
files are the truth: an index that was lost costs the names only.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from mvstack.sources.spec import SHA256, extension
from mvstack.support import locks
from mvstack.support.errors import SourceError, relative
from mvstack.support.files import open_regular, sha256_of, sync, write_atomically

_INCOMING = ".incoming-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What to do about a file that is there and may not be read.
ASK_OWNER = "ask its owner to open it (chmod go+r) or, if it is licensed, to add you to its group"
_PRIVATE = 0o640  # of a licensed file: who has not signed does not read it in the mirror either


@dataclass(frozen=True)
class Entry:
    """One stored file: its name, its hash, size in bytes, where it came from and for what."""

    sha256: str
    filename: str
    software: str
    size: int
    place: str
    note: str = ""


_ENTRIES = TypeAdapter(list[Entry])


def below(sha256: str, filename: str) -> str:
    """Where a mirror has a file of that hash and name, as Spack looks for it."""
    ext = extension(filename)
    return f"_source-cache/archive/{sha256[:2]}/{sha256}" + (f".{ext}" if ext else "")


@dataclass(frozen=True)
class Verdict:
    """What ``verify`` found of one entry."""

    entry: Entry
    state: str  # good, damaged, missing or unreadable (by this user)
    path: Path


class Store:
    """The mirror below ``root``. Raises SourceError where it cannot be written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.archive = root / "_source-cache" / "archive"
        self.index = root / "index.json"

    def path(self, sha256: str, filename: str) -> Path:
        """Where a file of that hash and name stands."""
        return self.root / below(sha256, filename)

    def get(self, sha256: str) -> Path | None:
        """The stored file with that hash; None when there is none. It is not hashed again."""
        if not SHA256.fullmatch(sha256):
            return None
        found = (self.archive / sha256[:2]).glob(f"{sha256}*")
        with contextlib.suppress(PermissionError):  # in a folder of somebody's own, none is for us
            return min((path for path in found if _is_ours(path)), default=None)
        return None

    @contextlib.contextmanager
    def incoming(self) -> Iterator[Path]:
        """A folder in the mirror's own file system for files on their way in.

        Gone when the block ends, in whatever way. What a killed process left is removed by the
        next one; a folder in use is locked.
        """
        with self._writing():  # so that nobody sweeps the folder before it is locked
            for old in self.root.glob(f"{_INCOMING}*"):
                if not old.is_symlink() and not locks.is_held(old / ".lock"):
                    shutil.rmtree(old, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(dir=self.root, prefix=_INCOMING))
            lock = contextlib.ExitStack()
            lock.enter_context(locks.hold(folder / ".lock"))
        with lock:
            try:
                yield folder
            except OSError as error:
                raise self._cannot_write(error) from None
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def take(self, file: Path, entry: Entry) -> Path:
        """Move a complete incoming file to its place, by one rename, and note it."""
        target = self.path(entry.sha256, entry.filename)
        with self._writing():
            sync(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
            sync(target.parent)
            # one file may be the source of several software: each has a line of its own
            self._write([*(row for row in self._indexed() if _order(row) != _order(entry)), entry])
        return target

    def add(self, file: Path, entry: Entry, private: bool = False) -> Path:
        """Copy ``file`` into the mirror under ``entry``.

        A ``private`` one is licensed: others than its owner and group do not read it. Raises
        SourceError for other bytes than the entry's, InvalidInput for what is no regular file.
        """
        with open_regular(file) as source, self.incoming() as folder:
            incoming = folder / "file"
            with incoming.open("wb") as target:
                shutil.copyfileobj(source, target)
            if (found := sha256_of(incoming)) != entry.sha256:
                raise SourceError(
                    "the file does not have its hash; it may have changed while it was copied",
                    relative(file),
                    found=f"sha256 {found}",
                    allowed=f"sha256 {entry.sha256}",
                    todo="run the same command again when nothing writes to the file",
                    outcome="Nothing was added.",
                )
            if private:
                incoming.chmod(_PRIVATE)
            return self.take(incoming, entry)

    def entries(self) -> list[Entry]:
        """What the mirror holds, by software and file: the index, and files that it misses."""
        return sorted((entry for _, entry in self._rows()), key=_order)

    def entry(self, sha256: str, software: str) -> Entry | None:
        """What is known of the file with that hash, best of all as a source of ``software``."""
        rows = [entry for entry in self._indexed() if entry.sha256 == sha256]
        return next((row for row in rows if row.software == software), next(iter(rows), None))

    def verify(self) -> Iterator[Verdict]:
        """Hash every file again, one at a time; nothing is removed."""
        for path, entry in sorted(dict(self._rows()).items()):
            state = "missing"
            try:
                if _is_ours(path):
                    state = "damaged" if damage(path, _hash_in(path)) else "good"
            except PermissionError:
                state = "unreadable"
            yield Verdict(entry, state, path)

    def remove(self, verdict: Verdict) -> None:
        """Remove the file of a verdict, its lines in the index and the links to it."""
        with self._writing():
            verdict.path.unlink(missing_ok=True)
            for link in (self.root / "easybuild").glob("*/*/*"):
                if link.is_symlink() and not link.exists():
                    link.unlink(missing_ok=True)
            gone, rows = verdict.path, self._indexed()
            self._write([row for row in rows if self.path(row.sha256, row.filename) != gone])

    def link_easybuild(self, software: str, filename: str, sha256: str) -> Path:
        """EasyBuild's name for a stored file: a relative link in ``easybuild/<letter>/<Name>/``.

        A file of somebody's own there is left alone when it has the same bytes.
        """
        stored = self.get(sha256)
        if stored is None:
            raise SourceError(
                f"{filename} is not in the mirror",
                relative(self.root),
                found=f"no file with sha256 {sha256}",
                todo="mvstack sources fetch",
            )
        first = software[0].lower()
        letter = first if "a" <= first <= "z" else "0"  # as EasyBuild does it
        link = self.root / "easybuild" / letter / software / filename
        wanted = os.path.relpath(stored, link.parent)
        if link.is_symlink() and str(link.readlink()) == wanted:
            return link  # nothing to write: also right in a mirror that can only be read
        if link.exists() and not link.is_symlink():
            if link.is_file() and sha256_of(link) == sha256:
                return link
            raise SourceError(
                "EasyBuild would take this file, which has other bytes",
                str(link),
                allowed=f"a link to {stored}",
                todo="move it away, then run the same command again",
            )
        with self._writing():
            link.parent.mkdir(parents=True, exist_ok=True)
            temporary = link.with_name(f".{link.name}.new")
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(wanted)
            temporary.replace(link)
        return link

    def _indexed(self) -> list[Entry]:
        """The rows of the index; none when it is lost or damaged, since the files are the truth."""
        try:
            rows = _ENTRIES.validate_json(self.index.read_bytes(), strict=True)
        except (OSError, ValueError):
            return []
        return [row for row in rows if SHA256.fullmatch(row.sha256)]

    def _rows(self) -> list[tuple[Path, Entry]]:
        """Every line of the index with its file, and every file that has no line."""
        rows = [(self.path(row.sha256, row.filename), row) for row in self._indexed()]
        known = {path for path, _ in rows}
        for path in sorted(self.archive.glob("*/*")):
            if path not in known and _is_ours(path):
                entry = Entry(_hash_in(path), path.name, "", path.stat().st_size, "unknown")
                rows.append((path, entry))
        return rows

    def _write(self, entries: list[Entry]) -> None:
        rows = json.dumps([asdict(entry) for entry in sorted(entries, key=_order)], indent=1)
        write_atomically(self.index, rows + "\n")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the mirror's lock; a failure to write becomes an error for a person."""
        try:
            with locks.hold(self.root / ".lock"):
                yield
        except OSError as error:
            raise self._cannot_write(error) from None

    def _cannot_write(self, error: OSError) -> SourceError:
        todo = "give another root with --root or MVSTACK_ROOT, or ask who owns it"
        if error.errno in _FULL:
            todo = "make room (`mvstack sources list` shows sizes), or give another --root"
        what = f"the source mirror cannot be written: {error.strerror or error}"
        kept = "Nothing half-written was kept."
        return SourceError(what, str(error.filename or self.root), todo=todo, outcome=kept)


def _order(entry: Entry) -> tuple[str, str, str]:
    return entry.software, entry.filename, entry.sha256


def _hash_in(path: Path) -> str:
    """The hash that a file of the archive is named by."""
    return path.name.partition(".")[0]


def _is_ours(path: Path) -> bool:
    """Whether a file is named by a hash and not a link, which could lead anywhere."""
    return bool(SHA256.fullmatch(_hash_in(path))) and path.is_file() and not path.is_symlink()


def damage(path: Path, sha256: str) -> str:
    """What a file has instead of those bytes; "" when it is whole. Raises PermissionError."""
    try:
        found = sha256_of(path)
    except PermissionError:  # it may be whole
        raise
    except OSError as error:  # a bad sector is damage, too
        return f"it cannot be read: {error.strerror}"
    return "" if found == sha256 else f"sha256 {found}"
