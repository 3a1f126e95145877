"""Spack's own build cache in the same folder and with the same key; layout 3.

What Spack built in a handover are manifests that name all their blobs by hash; they are signed
anew. Spack's index and its list of keys are not written then: Spack installs by the names of
manifests, and trusts the keys of mvstack's GPG home alone. `spack buildcache update-index` makes an
index for those who search the cache.
"""

import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mvstack.builders.base import Entry, Row
from mvstack.builders.spack.environments import for_tree, store_of
from mvstack.builders.spack.lock import locks_of
from mvstack.builders.spack.resolve import installed, read
from mvstack.builders.spack.runner import Spack
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable
from mvstack.cache.store import publish
from mvstack.cache.use import Caches, refusals
from mvstack.model.spack_lock import Node
from mvstack.plan import graph
from mvstack.plan.types import Plan, plan_of
from mvstack.support.errors import Refused
from mvstack.support.files import sha256_of, write_atomically
from mvstack.support.progress import Progress

FOLDER = "spack"  # below the cache
LAYOUT = f"{FOLDER}/v3/layout.json"
ENOUGH = 1 << 26  # bytes of a spec at most


def push(
    plan: dict[str, Any],
    place: Place,
    key: gpg.Key,
    progress: Progress,
    replace: bool = False,
    only: frozenset[str] | None = None,
) -> list[Row]:
    """Push what Spack installed for ``plan`` (its plan.json); a row for each package.

    Spack itself packs, signs and skips what is there. ``only`` are DAG hashes.
    Raises Refused when nothing is installed there or not all of ``only``, BuildFailed with Spack's
    words when it will not push.
    """
    made = plan_of(plan)
    tree, cache = Path(made.tree), place.writable() / FOLDER
    there, rows = installed(store_of(tree)), list[Row]()
    if lost := sorted((only or set()) - there.keys()):
        raise _not_installed(f"these are not installed in this tree: {', '.join(lost)}", made)
    for file in locks_of(tree):
        chosen = there if only is None else only
        nodes = [node for node in read(file).built() if node.hash in chosen]
        if not nodes:
            continue
        before = {node.hash for node in nodes if entry(cache, node.name, node.hash)}
        what = f"{len(nodes)} packages of {made.system}/{made.partition}"
        with progress.step("push", what) as step:
            words = ["-e", str(file.parent), "buildcache", "push", "--key", key.fingerprint]
            words += ["--update-index", *(["--force"] if replace else [])]
            words += ["--only", "package"] if only is not None else []
            hashes = [] if only is None else [f"/{node.hash}" for node in nodes]
            cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="mvstack-") as state, gpg.agent_home():
                isolated = for_tree(Path(made.root), tree, progress, state=Path(state))
                spack = Spack(isolated, Path(state) / "logs")
                spack.run("push", *words, cache.as_uri(), *hashes, note=step.note)
        stayed = set() if replace else before
        rows += [
            {
                "result": "already there" if node.hash in stayed else "pushed",
                "package": node.name,
                "version": node.version,
                "module": "",
                "hash": node.hash,
                "os": made.os,
                "target": made.target,
                "bytes": _size(manifest),
            }
            for node in nodes
            if (manifest := entry(cache, node.name, node.hash))
        ]
    if not rows:
        raise _not_installed("nothing of this tree is installed", made)
    publish(key, cache.parent)
    return rows


def _not_installed(message: str, plan: Plan) -> Refused:
    todo = f"mvstack install {plan.system}/{plan.partition}"
    return Refused(message, plan.tree, todo=todo, outcome="Nothing was pushed.")


def offered(caches: Caches, nodes: Iterable[Node]) -> set[str]:
    """The hashes of ``nodes`` that the caches have, signed and whole.

    Spack looks at the signature again when it unpacks; but where it does not believe one it builds
    without a word. So every entry is looked at here first. Raises Refused with all that must not be
    used, unless it may be built instead.
    """
    found: set[str] = set()
    wrong: dict[tuple[str, str, str], list[str]] = {}
    for node in nodes:
        for place in caches.places:
            try:
                if believed(place, manifest_of(node)):
                    found.add(node.hash)
                    break
            except Unreachable:
                continue
            except NotBelieved as error:
                reason = (place.name, str(error), error.todo)
                wrong.setdefault(reason, []).append(str(node))
    if wrong and not caches.build_refused:
        raise Refused(*refusals(wrong), outcome="Nothing was installed.")
    return found


def _size(manifest: Path) -> int:
    """The bytes of the archives that a signed manifest of this machine's own names."""
    lengths = re.findall(r'"contentLength":\s*(\d+)', manifest.read_text(errors="replace"))
    return sum(map(int, lengths))


@dataclass(frozen=True)
class Signed:
    """An entry that a trusted key signed and that is whole: its manifest, and the blobs it names.

    ``blobs`` are names below the build cache; ``spec`` is that of the blob with the package's spec.
    """

    text: str
    signer: str
    blobs: tuple[str, ...]
    spec: str
    size: int


def manifest_of(node: Node) -> str:
    """The manifest of a package, below the cache; layout 3 of Spack's build caches."""
    name = f"{node.name}-{node.version}-{node.hash}.spec.manifest.json"
    return f"{FOLDER}/v3/manifests/spec/{node.name}/{name}"


def believed(place: Place, name: str) -> Signed | None:
    """What ``place`` has under the manifest ``name``; None when it has none. Raises NotBelieved."""
    signed = place.read(name)
    if signed is None:
        return None
    try:
        text, signer = gpg.verified(signed)
        rows = json.loads(text)["data"]
        blobs = dict(map(_blob, rows))
        spec = [_blob(row)[0] for row in rows if ".spec." in str(row.get("mediaType"))]
    except (ValueError, KeyError, TypeError):
        raise NotBelieved("its manifest cannot be used") from None
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        for blob, size in blobs.items():
            file = Path(folder) / "blob"
            if not place.bring(blob, file):
                raise NotBelieved("its archive is not there")
            if file.stat().st_size != size or sha256_of(file) != Path(blob).name:
                raise NotBelieved("its archive has other bytes than its manifest says")
    return Signed(text, signer, tuple(blobs), spec[0] if spec else "", sum(blobs.values()))


def _blob(row: dict[str, Any]) -> tuple[str, int]:
    """Name and size of one blob. Raises ValueError for a hash that would be another file's name."""
    digest, size = row["checksum"], row["contentLength"]
    if not (isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest)):
        raise ValueError("this is not a sha256")
    return f"{FOLDER}/blobs/sha256/{digest[:2]}/{digest}", int(size)


def entry(cache: Path, name: str, content: str) -> Path | None:
    """The signed manifest of one package in a build cache of layout 3; None when there is none."""
    found = (cache / "v3" / "manifests" / "spec" / name).glob(f"*-{content}.spec.manifest.json")
    return next(found, None)


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
            row = json.loads(stream.read(ENOUGH))["spec"]["nodes"][0]
        node = Node(row["hash"], row["name"], str(row["version"]))
    except (OSError, EOFError, ValueError, LookupError, TypeError):
        raise NotBelieved("its spec cannot be read") from None
    if manifest_of(node) != name:
        raise NotBelieved(f"its spec is that of {node}, filed as another")
    told = (node.name, node.version, node.hash, found.size, found.signer)
    return Built(source, *told, "", (), name, found)
