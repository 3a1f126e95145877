"""A cache on disk or behind a URL, and how an entry of it is found and believed.

    <cache>/easybuild/<os>/ab/abcd….json.asc         the signed manifest, by content hash
    <cache>/easybuild/<os>/ab/abcd…-<hash>.tar.gz    its archive
    <cache>/easybuild/index.json                     what there is, for listings; believed by nobody
    <cache>/keys/<fingerprint>.asc                   keys that signed, to be compared and trusted
    <cache>/spack/                                   Spack's own build cache

The manifest is one file with its signature inside, so that it appears and changes in one step.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import TypeAdapter

from mvstack.cache import gpg, unpack
from mvstack.cache.manifest import Manifest, parse
from mvstack.cache.place import NotBelieved, Place, Unreachable, reachable
from mvstack.support import locks
from mvstack.support.errors import Missing, telling
from mvstack.support.files import sync, write_atomically

INDEX = "easybuild/index.json"


@dataclass(frozen=True)
class Row:
    """A row of the index: what an entry is, for which machine; ``accepted`` as in its manifest."""

    content: str
    os: str
    easyconfig: str
    target: str = ""
    accepted: str = ""


_ROWS = TypeAdapter(list[Row])


@dataclass(frozen=True)
class Entry:
    """An entry whose signature holds, and who signed it."""

    place: Place
    manifest: Manifest
    signer: str

    def bring(self, target: Path) -> None:
        """Copy the archive to ``target`` and check it. Raises NotBelieved, Unreachable."""
        name = archive_name(self.manifest)
        if not self.place.bring(name, target):
            raise NotBelieved(f"its archive {name} is not there")
        unpack.hashed(self.manifest, target)

    @contextlib.contextmanager
    def brought(self) -> Iterator[Path]:
        """The checked archive, here for as long as the block runs. Raises as :meth:`bring`."""
        with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
            archive = Path(folder) / "archive.tar.gz"
            self.bring(archive)
            yield archive


def manifest_name(os_name: str, content: str) -> str:
    """Where the manifest of a content hash stands."""
    return f"easybuild/{os_name}/{content[:2]}/{content}.json.asc"


def archive_name(manifest: Manifest) -> str:
    """Where the archive stands; its own hash is in the name, so a new one never replaces it."""
    return (
        f"easybuild/{manifest.os}/{manifest.content[:2]}/"
        f"{manifest.content}-{manifest.archive.sha256[:12]}.tar.gz"
    )


def find(place: Place, os_name: str, content: str) -> Entry | None:
    """The entry for a content hash; None when the cache has none.

    Raises NotBelieved when it is not signed by a trusted key or is not what it is filed as, and
    Unreachable.
    """
    signed = place.read(manifest_name(os_name, content))
    if signed is None:
        return None
    text, signer = gpg.verified(signed)
    try:
        manifest = parse(text)
    except ValueError as error:
        raise NotBelieved(f"its manifest cannot be used: {error}") from None
    if (manifest.content, manifest.os) != (content, os_name):
        raise NotBelieved(
            f"its manifest is that of {manifest.easyconfig} for {manifest.os}, filed as another"
        )
    return Entry(place, manifest, signer)


def names(place: Place) -> list[tuple[str, str]]:
    """Operating system and content hash of all that a cache says it has. Raises Unreachable."""
    if place.folder:
        reachable(place.folder)
        entries = place.folder / "easybuild"
        try:
            next(entries.iterdir(), None)  # glob passes over what cannot be read
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unreachable(f"{entries}: {error.strerror}") from None
        files = sorted(entries.glob("*/??/*.json.asc"))
        return [(file.parts[-3], file.name.removesuffix(".json.asc")) for file in files]
    if place.read(INDEX) is None:
        raise Unreachable(f"{place.url}/{INDEX} is not there: is it a cache?")
    return [(row.os, row.content) for row in rows(place)]


def rows(place: Place) -> list[Row]:
    """The rows of the index; none when it is missing or damaged."""
    try:
        return _ROWS.validate_json(place.read(INDEX) or b"[]", strict=True)
    except ValueError:
        return []


def publish(key: gpg.Key, folder: Path) -> None:
    """Have the public half of ``key`` in the cache, for others to compare and trust."""
    public = folder / "keys" / f"{key.fingerprint}.asc"
    if not public.is_file():
        write_atomically(public, gpg.export(key.fingerprint))


def put(place: Place, manifest: Manifest, signed: str, archive: Path, key: gpg.Key) -> None:
    """Add an entry: the archive, then the manifest that names it, then the row of the index.

    All under one lock: two that push one package would each remove the archive of the other.
    Raises Missing when the cache cannot be written.
    """
    folder = place.writable()
    todo = "make room, or ask who owns it; then run the same command again"
    with telling(Missing, "the cache cannot be written", where=str(folder), todo=todo):
        target = folder / archive_name(manifest)
        target.parent.mkdir(parents=True, exist_ok=True)
        incoming = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            shutil.copyfile(archive, incoming)
            sync(incoming)
            with locks.hold(folder / ".lock"):
                incoming.replace(target)
                write_atomically(folder / manifest_name(manifest.os, manifest.content), signed)
                publish(key, folder)
                new = Row(**{one.name: getattr(manifest, one.name) for one in fields(Row)})
                same = (new.os, new.content)
                kept = [one for one in rows(place) if (one.os, one.content) != same]
                write_atomically(folder / INDEX, _ROWS.dump_json([*kept, new], indent=1) + b"\n")
                for old in target.parent.glob(f"{manifest.content}-*.tar.gz"):
                    if old != target:  # of the entry that this one replaced
                        old.unlink(missing_ok=True)
        finally:
            incoming.unlink(missing_ok=True)
