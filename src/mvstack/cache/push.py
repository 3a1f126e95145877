"""Push what is installed into a cache, and look whether a cache is as it was pushed."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mvstack.cache import gpg, store, unpack
from mvstack.cache.manifest import Manifest
from mvstack.cache.pack import Installed, installed, libraries, pack
from mvstack.cache.place import NotBelieved, Place, Unreachable
from mvstack.support.errors import Refused
from mvstack.support.progress import Progress
from mvstack.tree.folder import locked


def push(
    plan: dict[str, Any],
    place: Place,
    key: gpg.Key,
    progress: Progress,
    replace: bool = False,
    only: frozenset[str] | None = None,
) -> list[dict[str, Any]]:
    """Push every package of the tree of ``plan`` (its plan.json) that is whole; a row for each.

    What the cache has already, whole and signed by a trusted key, stays, unless ``replace``. With
    ``only`` (easyconfigs) the others are left out, except what EasyBuild brought along for them.
    Raises Refused when nothing is installed there or not all of ``only``, Locked while somebody
    installs.
    """
    place.writable()
    rows = []
    with locked(Path(plan["root"]), reading=True):
        made, nodes = installed(plan)
        if not nodes:
            todo = f"mvstack install {made.system}/{made.partition}"
            raise Refused("nothing is installed in this tree", plan["tree"], todo=todo)
        needs = libraries(nodes)
        for node in nodes if only is None else _of(nodes, only, made.tree):
            what = f"{node.node.name} {node.node.version}"
            if not replace and (found := good(place, made.os, node.content)):
                progress.skip("push", what, "already there")
                rows.append(_row("already there", found))
                continue
            with (
                progress.step("push", what) as step,
                tempfile.TemporaryDirectory(prefix="mvstack-") as folder,
            ):
                step.note("packing")
                archive = Path(folder) / "archive.tar.gz"
                manifest = pack(made, node, archive, needs[node.content])
                step.note(f"signing, {manifest.archive.size / 1e6:.1f} MB")
                signed = gpg.sign(manifest.text(), key.fingerprint)
                store.put(place, manifest, signed, archive, key)
            rows.append(_row("pushed", manifest))
    return rows


def _of(nodes: list[Installed], only: frozenset[str], tree: str) -> list[Installed]:
    """Those of ``only`` and what they require, in the same order. Raises Refused if one lacks."""
    chosen = [node for node in nodes if node.node.key in only]
    if lost := sorted(only - {node.node.key for node in chosen}):
        raise Refused(
            f"{', '.join(lost)} is not installed in this tree",
            tree,
            found=", ".join(node.node.key for node in nodes),
            todo="install it first, then run the same command again",
            outcome="Nothing was pushed.",
        )
    required = {content for node in chosen for content in node.requires}
    return [node for node in nodes if node in chosen or node.content in required]


def good(place: Place, os_name: str, content: str) -> Manifest | None:
    """The manifest of an entry if the cache has it whole; None when it must be pushed.

    Where it was built does not count: a longer path was pushed to fit in more places.
    """
    with contextlib.suppress(NotBelieved, Unreachable):
        if entry := store.find(place, os_name, content):
            with entry.brought():
                return entry.manifest
    return None


def _about(manifest: Manifest) -> dict[str, Any]:
    """What listings tell of a package."""
    names = ("package", "version", "module", "mpi", "easyconfig", "target")
    return {**{name: getattr(manifest, name) for name in names}, "bytes": manifest.archive.size}


def _row(result: str, manifest: Manifest) -> dict[str, Any]:
    return {"result": result, **_about(manifest), "hash": manifest.content, "os": manifest.os}


@dataclass(frozen=True)
class Verdict:
    """What a look at one entry found; ``why`` it is refused, ``signer`` when it is believed."""

    os: str
    content: str
    state: Literal["good", "refused"]
    why: str = ""
    signer: str = ""
    manifest: Manifest | None = None

    def as_dict(self) -> dict[str, Any]:
        """The verdict for ``--json``."""
        row: dict[str, Any] = {"os": self.os, "hash": self.content, "state": self.state}
        if self.manifest is None:
            return row | {"why": self.why}
        row |= _about(self.manifest)
        return row | {"tree": self.manifest.tree, "signed_by": self.signer}


def look(place: Place, whole: bool) -> Iterator[Verdict]:
    """Every entry of a cache, its signature checked, or every byte of it. Raises Unreachable."""
    for os_name, content in store.names(place):
        try:
            entry = store.find(place, os_name, content)
            if entry is None:
                raise NotBelieved("the index names it, and it is not there")
            if whole:
                with entry.brought() as archive:
                    unpack.check(entry.manifest, archive)
            yield Verdict(os_name, content, "good", "", entry.signer, entry.manifest)
        except NotBelieved as error:
            yield Verdict(os_name, content, "refused", str(error))
        except Unreachable as error:
            if place.folder is None or not place.folder.is_dir():
                raise
            yield Verdict(os_name, content, "refused", f"it cannot be read: {error}")
