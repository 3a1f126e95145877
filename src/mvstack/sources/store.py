"""The mirror on disk: content-addressed as Spack does it, with EasyBuild's layout as links."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from mvstack.errors import Problem, SourceError, relative
from mvstack.files import write_atomically

CHUNK = 1 << 20
EXTENSIONS = ("tar.gz", "tar.xz", "tar.bz2", "tar.zst", "tgz", "zip", "whl", "sh", "rpm")


@dataclass(frozen=True)
class Entry:
    """One stored file: its name, its hash, size in bytes, where it came from and for what."""

    sha256: str
    filename: str
    software: str
    size: int
    place: str
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """What ``verify`` found of one entry."""

    entry: Entry
    state: Literal["good", "damaged", "missing"]
    path: Path


def extension(filename: str) -> str:
    """The part of a file's name that says how to unpack it; "" when it has none we know."""
    return next((ext for ext in EXTENSIONS if filename.endswith(f".{ext}")), "")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class Store:
    """The mirror below ``root``. Raises SourceError where it cannot be written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.archive = root / "_source-cache" / "archive"
        self.index = root / "index.json"

    def path(self, sha256: str, filename: str) -> Path:
        """Where a file of that hash and name stands."""
        ext = extension(filename)
        return self.archive / sha256[:2] / (f"{sha256}.{ext}" if ext else sha256)

    def get(self, sha256: str) -> Path | None:
        """The stored file with that hash; None when there is none."""
        found = sorted((self.archive / sha256[:2]).glob(f"{sha256}*"))
        return found[0] if found else None

    @contextlib.contextmanager
    def incoming(self) -> Iterator[tuple[BinaryIO, Path]]:
        """A temporary file in the mirror's own file system; gone when the block ends."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.root, prefix=".incoming-")
        except OSError as error:
            raise self._cannot_write(error) from None
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream, Path(name)
        except OSError as error:
            raise self._cannot_write(error) from None
        finally:
            Path(name).unlink(missing_ok=True)

    def take(self, temporary: Path, entry: Entry) -> Path:
        """Move a complete temporary file to its place, by one rename, and note it."""
        target = self.path(entry.sha256, entry.filename)
        try:
            with temporary.open("rb") as stream:
                os.fsync(stream.fileno())
            temporary.chmod(0o644)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(target)
            self._note(entry)
        except OSError as error:
            raise self._cannot_write(error) from None
        return target

    def add(self, file: Path, entry_for: Entry) -> Path:
        """Copy ``file`` into the mirror under ``entry_for``; its hash is computed while copying.

        Raises SourceError when the bytes do not have the entry's hash.
        """
        digest = hashlib.sha256()
        with self.incoming() as (stream, temporary):
            with file.open("rb") as source:
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    stream.write(chunk)
            stream.flush()
            if digest.hexdigest() != entry_for.sha256:
                raise SourceError(
                    Problem(
                        "the file changed while it was copied",
                        relative(file),
                        found=digest.hexdigest(),
                        allowed=entry_for.sha256,
                    )
                )
            return self.take(temporary, entry_for)

    def entries(self) -> list[Entry]:
        """What the index knows, by software and file."""
        try:
            rows = json.loads(self.index.read_text())
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise SourceError(
                Problem(
                    f"the mirror's index cannot be read: {error}",
                    relative(self.index),
                    todo="remove it: `mvstack sources fetch` writes it anew from the files",
                )
            ) from None
        entries = [Entry(**row) for row in rows]
        return sorted(entries, key=lambda entry: (entry.software, entry.filename, entry.sha256))

    def verify(self) -> list[Verdict]:
        """Hash every file again; nothing is removed."""
        verdicts = []
        for entry in self.entries():
            path = self.path(entry.sha256, entry.filename)
            if not path.is_file():
                verdicts.append(Verdict(entry, "missing", path))
            elif sha256_of(path) != entry.sha256:
                verdicts.append(Verdict(entry, "damaged", path))
            else:
                verdicts.append(Verdict(entry, "good", path))
        return verdicts

    def remove(self, entry: Entry) -> None:
        """Forget an entry and remove its file."""
        self.path(entry.sha256, entry.filename).unlink(missing_ok=True)
        with self._locked():
            self._write([one for one in self.entries() if one.sha256 != entry.sha256])

    def link_easybuild(self, software: str, filename: str, sha256: str) -> Path:
        """EasyBuild's name for a stored file: a relative link in ``easybuild/<letter>/<Name>/``."""
        stored = self.get(sha256)
        if stored is None:
            raise SourceError(Problem(f"{sha256} is not in the mirror", relative(self.root)))
        link = self.root / "easybuild" / software[0].lower() / software / filename
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            temporary = link.with_name(f".{link.name}.{os.getpid()}")
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(os.path.relpath(stored, link.parent))
            temporary.replace(link)
        except OSError as error:
            raise self._cannot_write(error) from None
        return link

    def _note(self, entry: Entry) -> None:
        with self._locked():
            kept = [
                one
                for one in self.entries()
                if (one.sha256, one.filename) != (entry.sha256, entry.filename)
            ]
            self._write([*kept, entry])

    def _write(self, entries: list[Entry]) -> None:

        rows = [asdict(entry) for entry in sorted(entries, key=lambda e: (e.software, e.filename))]
        write_atomically(self.index, json.dumps(rows, indent=1) + "\n")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.root / ".lock").open("a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _cannot_write(self, error: OSError) -> SourceError:
        return SourceError(
            Problem(
                f"the source mirror cannot be written: {error.strerror}",
                str(self.root),
                todo="make room or give another root; nothing half-written was kept",
            )
        )
