"""Signing Spack's entries anew: the manifest, which names all its blobs by their hashes.

Layout 3 of Spack's build caches. Its index and its list of keys are not written: Spack installs by
the names of manifests, and trusts the keys of mvstack's GPG home alone. `spack buildcache
update-index` makes an index for those who search the cache.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.spack import resolve
from mvstack.builders.spack.cache import FOLDER, Signed, believed, manifest_of
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable
from mvstack.cache.store import publish
from mvstack.ci.handover import Entry
from mvstack.model.spack_lock import Node
from mvstack.sources.files import sha256_of
from mvstack.support.errors import Problem
from mvstack.support.files import write_atomically

LAYOUT = f"{FOLDER}/v3/layout.json"
_ENOUGH = 1 << 26  # bytes of a spec at most


@dataclass(frozen=True)
class Built(Entry):
    """A package that Spack built; ``name`` is its manifest, from the cache."""

    name: str
    found: Signed

    def good(self, target: Place) -> bool:
        """Whether ``target`` has it already."""
        try:
            return believed(target, self.name) is not None
        except (NotBelieved, Unreachable):
            return False

    def put(self, target: Place, key: gpg.Key) -> None:
        """Sign it into ``target``."""
        folder = target.writable()
        for blob in (*self.found.blobs, LAYOUT):
            if blob != LAYOUT or not (folder / LAYOUT).is_file():
                self._bring(blob, folder)
        write_atomically(folder / self.name, gpg.sign(self.found.text, key.fingerprint))
        publish(key, folder)

    def _bring(self, blob: str, folder: Path) -> None:
        """Copy one file of the handover; a blob's name is its hash, which is checked again."""
        target = folder / blob
        target.parent.mkdir(parents=True, exist_ok=True)
        incoming = target.with_name(f".{target.name}.incoming")
        try:
            whole = self.place.bring(blob, incoming)
            if blob != LAYOUT and not (whole and sha256_of(incoming) == target.name):
                raise NotBelieved(f"{blob} changed")
            if whole:
                shutil.move(incoming, target)
        finally:
            incoming.unlink(missing_ok=True)


def names(cache: Path) -> list[str]:
    """The manifests of all entries, from the cache."""
    files = cache.glob(f"{FOLDER}/v3/manifests/spec/*/*.spec.manifest.json")
    return sorted(str(file.relative_to(cache)) for file in files)


def read(source: Place, name: str) -> Built:
    """The entry under the manifest ``name``, if it is what its name says. Raises NotBelieved."""
    found = believed(source, name)
    if found is None or source.folder is None or not found.spec:
        raise NotBelieved("its manifest names no spec")
    try:
        with gzip.open(source.folder / found.spec) as stream:
            row = json.loads(stream.read(_ENOUGH))["spec"]["nodes"][0]
        node = Node(row["hash"], row["name"], str(row["version"]))
    except (OSError, EOFError, ValueError, LookupError, TypeError):
        raise NotBelieved("its spec cannot be read") from None
    if manifest_of(node) != name:
        raise NotBelieved(f"its spec is that of {node}, filed as another")
    told = (node.name, node.version, node.hash, found.size, found.signer)
    return Built(source, *told, "", name, found)


def problems(entries: list[Built], lock: Path | None) -> list[Problem]:
    """What is neither in ``lock`` nor in that of the compiler beside it."""
    files = [lock, lock.parent / "compiler" / "spack.lock"] if lock else []
    known = {key for file in files if file.is_file() for key in resolve.read(file).nodes}
    return [
        Problem(
            "not to be signed: it is not part of the lock",
            f"{entry.place.name}: {entry.what}",
            found=entry.content,
            allowed=f"packages of {lock}" if lock else "nothing, because no lock was given",
            todo="sign with the lock that the build jobs had; else see what put it there",
        )
        for entry in entries
        if entry.content not in known
    ]
