"""What Spack built in a handover: manifests that name all their blobs by hash, signed anew.

Layout 3 of Spack's build caches. Its index and its list of keys are not written: Spack installs by
the names of manifests, and trusts the keys of mvstack's GPG home alone. `spack buildcache
update-index` makes an index for those who search the cache.
"""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mvstack.builders.base import Entry
from mvstack.builders.spack.cache import FOLDER, Signed, believed, manifest_of
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable
from mvstack.cache.store import publish
from mvstack.model.spack_lock import Node
from mvstack.plan import graph
from mvstack.plan.types import Plan
from mvstack.sources.files import sha256_of
from mvstack.support.files import write_atomically

LAYOUT = f"{FOLDER}/v3/layout.json"
_ENOUGH = 1 << 26  # bytes of a spec at most


@dataclass(frozen=True)
class Built(Entry):
    """See :class:`mvstack.builders.base.Entry`; ``name`` is its manifest, from the cache."""

    name: str
    found: Signed

    def is_of(self, node: graph.Node | None, plan: Plan) -> bool:
        return node is not None  # its hash is of all that it is

    def good(self, target: Place, content: str) -> bool:
        try:
            return believed(target, self.name) is not None
        except (NotBelieved, Unreachable):
            return False

    def put(self, target: Place, key: gpg.Key) -> None:
        folder = target.writable()
        for blob in (*self.found.blobs, LAYOUT):
            if blob != LAYOUT or not (folder / LAYOUT).is_file():
                self._bring(blob, folder / blob)
        write_atomically(folder / self.name, gpg.sign(self.found.text, key.fingerprint))
        publish(key, folder)

    def _bring(self, blob: str, target: Path) -> None:
        """Copy one file of the handover; a blob's name is its hash, which is checked again."""
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


def entries(source: Place) -> Iterator[tuple[str, Callable[[], Entry]]]:
    """See :meth:`mvstack.builders.base.Builder.entries`."""
    top = source.writable()
    for file in sorted(top.glob(f"{FOLDER}/v3/manifests/spec/*/*.spec.manifest.json")):
        name = str(file.relative_to(top))
        yield name, partial(_read, source, name)


def _read(source: Place, name: str) -> Built:
    found = believed(source, name)
    if found is None or not found.spec:
        raise NotBelieved("its manifest names no spec")
    try:
        with gzip.open(source.writable() / found.spec) as stream:
            row = json.loads(stream.read(_ENOUGH))["spec"]["nodes"][0]
        node = Node(row["hash"], row["name"], str(row["version"]))
    except (OSError, EOFError, ValueError, LookupError, TypeError):
        raise NotBelieved("its spec cannot be read") from None
    if manifest_of(node) != name:
        raise NotBelieved(f"its spec is that of {node}, filed as another")
    told = (node.name, node.version, node.hash, found.size, found.signer)
    return Built(source, *told, "", (), name, found)
