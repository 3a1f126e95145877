"""Signing Spack's entries anew: the manifest, which names all its blobs by their hashes.

Layout 3 of Spack's build caches. Its index and its list of keys are not written: Spack installs by
the names of manifests, and trusts the keys of mvstack's GPG home alone. `spack buildcache
update-index` makes an index for those who search the cache.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.builders.spack.cache import FOLDER, Signed, believed, manifest_of
from mvstack.builders.spack.graph import Node, read_graph
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.ci.handover import AGAIN, NOTHING_SIGNED, keyring
from mvstack.plan.types import Plan
from mvstack.sources.files import sha256_of
from mvstack.support.errors import Problem, Refused
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress

LAYOUT = f"{FOLDER}/v3/layout.json"
_ENOUGH = 1 << 26  # bytes of a spec at most


@dataclass(frozen=True)
class Entry:
    """One package of a handover, its signature and its blobs checked."""

    place: Place
    node: Node
    name: str
    found: Signed
    os: str
    target: str


def checked(
    plan: Plan | None, taken: list[Path], lock: Path | None, note: Callable[[str], None]
) -> list[Entry]:
    """Every entry of Spack's in the handovers, each once. Raises Refused if one is not good.

    With ``plan`` each must be in ``lock`` or in that of the compiler beside it.
    """
    found: dict[str, Entry] = {}
    wrong: list[Problem] = []
    for cache in taken:
        source = place(str(cache))
        manifests = sorted((cache / FOLDER / "v3/manifests/spec").glob("*/*.spec.manifest.json"))
        if not manifests:
            continue
        with keyring([cache]):  # its own key, and no other handover's
            for file in manifests:
                note(f"{len(found)} entries of Spack")
                name = str(file.relative_to(cache))
                try:
                    entry = _entry(source, name)
                    found.setdefault(entry.node.hash, entry)
                except (NotBelieved, Unreachable) as error:
                    wrong.append(Problem(f"not to be signed: {error}", str(file), todo=AGAIN))
    if plan and found:
        known = _hashes(lock)
        wrong += [
            Problem(
                "not to be signed: it is no part of the lock",
                f"{entry.place.name}: {entry.node.short}",
                found=entry.node.hash,
                allowed=f"packages of {lock}" if lock else "nothing, for no lock was given",
                todo="sign with the lock that the build jobs had; else see what put it there",
            )
            for entry in found.values()
            if entry.node.hash not in known
        ]
    if wrong:
        raise Refused(*wrong, outcome=NOTHING_SIGNED)
    return list(found.values())


def signed(entry: Entry, target: Place, key: gpg.Key, progress: Progress) -> dict[str, Any]:
    """Put one entry into the cache ``target``, signed with ``key``; its row."""
    what = f"{entry.node.name} {entry.node.version}"
    row = {
        "package": entry.node.name,
        "version": entry.node.version,
        "module": "",
        "easyconfig": "",
        "hash": entry.node.hash,
        "os": entry.os,
        "target": entry.target,
        "bytes": entry.found.size,
        "handed_by": entry.found.signer,
        "handover": entry.place.name,
    }
    if _good(target, entry.name):
        progress.skip("sign", what, "already there")
        return {"result": "already there", **row}
    folder = target.writable()
    with progress.step("sign", what):
        for blob in (*entry.found.blobs, LAYOUT):
            if blob != LAYOUT or not (folder / LAYOUT).is_file():
                _bring(entry, blob, folder)
        write_atomically(folder / entry.name, gpg.sign(entry.found.text, key.fingerprint))
        public = folder / "keys" / f"{key.fingerprint}.asc"
        if not public.is_file():
            write_atomically(public, gpg.export(key.fingerprint))
    return {"result": "signed", **row}


def _entry(source: Place, name: str) -> Entry:
    """The entry under the manifest ``name``, if it is what its name says. Raises NotBelieved."""
    found = believed(source, name)
    if found is None or source.folder is None or not found.spec:
        raise NotBelieved("its manifest names no spec")
    try:
        with gzip.open(source.folder / found.spec) as stream:
            row = json.loads(stream.read(_ENOUGH))["spec"]["nodes"][0]
        node = Node(row["hash"], row["name"], str(row["version"]), "external" in row)
        machine = row["arch"]
        os_name, target = str(machine["platform_os"]), machine["target"]
    except (OSError, EOFError, ValueError, LookupError, TypeError):
        raise NotBelieved("its spec cannot be read") from None
    if manifest_of(node) != name:
        raise NotBelieved(f"its spec is that of {node.short}, filed as another")
    word = target["name"] if isinstance(target, dict) else str(target)
    return Entry(source, node, name, found, os_name, word)


def _hashes(lock: Path | None) -> set[str]:
    """Every package of a lock and of the compiler's lock beside it."""
    files = [lock, lock.parent / "compiler" / "spack.lock"] if lock else []
    return {key for file in files if file.is_file() for key in read_graph(file).nodes}


def _good(target: Place, name: str) -> bool:
    try:
        return believed(target, name) is not None
    except (NotBelieved, Unreachable):
        return False


def _bring(entry: Entry, blob: str, folder: Path) -> None:
    """Copy one file of the handover; a blob's name is its hash, and that is looked at again."""
    target = folder / blob
    target.parent.mkdir(parents=True, exist_ok=True)
    incoming = target.with_name(f".{target.name}.incoming")
    try:
        whole = entry.place.bring(blob, incoming)
        if blob != LAYOUT and not (whole and sha256_of(incoming) == target.name):
            raise Refused(
                Problem(f"not to be signed: {blob} changed", entry.place.name, todo=AGAIN),
                outcome="What was signed before stays; this entry was not.",
            )
        if whole:
            shutil.move(incoming, target)
    finally:
        incoming.unlink(missing_ok=True)
