"""Signing entries of this project's own format anew: what EasyBuild built."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.base import graph_of
from mvstack.cache import gpg, store, unpack
from mvstack.cache.manifest import Manifest
from mvstack.cache.place import NotBelieved, Place
from mvstack.cache.push import good
from mvstack.ci.handover import AGAIN, Entry
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem


@dataclass(frozen=True)
class Built(Entry):
    """A package that EasyBuild built."""

    manifest: Manifest
    archive: str

    def good(self, target: Place) -> bool:
        """Whether ``target`` has it already."""
        return good(target, self.manifest.os, self.content) is not None

    def put(self, target: Place, key: gpg.Key) -> None:
        """Sign it into ``target``."""
        with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
            # what is signed is what is looked at here, and not what lies in the handover later
            archive = Path(folder) / "archive.tar.gz"
            if not self.place.bring(self.archive, archive):
                raise NotBelieved(f"its archive {self.archive} is not there any more")
            unpack.check(self.manifest, archive)
            signed = gpg.sign(self.manifest.text(), key.fingerprint)
            store.put(target, self.manifest, signed, archive, key)


def names(cache: Path) -> list[str]:
    """The manifests of all entries, from the cache."""
    return sorted(str(file.relative_to(cache)) for file in cache.glob("easybuild/*/??/*.json.asc"))


def read(source: Place, name: str) -> Built:
    """An entry signed by a trusted key, its archive hashed. Raises NotBelieved."""
    _, os_name, _, file = Path(name).parts
    found = store.find(source, os_name, file.removesuffix(".json.asc"))
    if found is None or source.folder is None:
        raise NotBelieved("it was there a moment ago")
    archive = source.folder / found.archive
    if not archive.is_file():
        raise NotBelieved(f"its archive {found.archive} is not there")
    unpack.hashed(found.manifest, archive)
    made = found.manifest
    told = (made.package, made.version, made.content, made.archive.size, found.signer)
    return Built(source, *told, made.easyconfig, made, found.archive)


def in_order(entries: Iterable[Built]) -> list[Built]:
    """What others require comes first."""
    required = _required(entries)
    return sorted(entries, key=lambda one: one.content not in required)


def _required(entries: Iterable[Built]) -> set[str]:
    return {content for entry in entries for content in entry.manifest.requires}


def problems(plan: Plan | None, entries: list[Built], target: Place) -> list[Problem]:
    """What must not be signed: no part of ``plan``, or without what it requires."""
    return [*(_not_of(plan, entries) if plan and entries else []), *_lacking(entries, target)]


def _not_of(plan: Plan, entries: list[Built]) -> list[Problem]:
    """What is neither a package of ``plan`` nor required by one: nobody asked to have it built."""
    required = _required(entries)
    expected = {
        node.content: (key, f"modules/{node.file}") for key, node in graph_of(plan).nodes.items()
    }
    wrong = []
    for entry in entries:
        manifest = entry.manifest
        is_for = (manifest.os, manifest.target)
        says = (manifest.easyconfig, manifest.module_file)
        wanted = says if manifest.content in required else expected.get(manifest.content)
        if (says, is_for) != (wanted, (plan.os, plan.target)):
            wrong.append(
                Problem(
                    "not to be signed: it is not part of the plan",
                    f"{entry.place.name}: {manifest.easyconfig}",
                    found=f"{manifest.module_file} for {' '.join(is_for)}, {manifest.content}",
                    allowed=f"packages of {plan.system}/{plan.partition} as they are planned now, "
                    f"for {plan.os} {plan.target}",
                    todo="sign with the plan that the build jobs had (the same commit); else see "
                    "what put it into this handover",
                )
            )
    return wrong


def _lacking(entries: list[Built], target: Place) -> list[Problem]:
    """Entries that require what is neither handed over nor in the site's cache."""
    found = {(entry.manifest.os, entry.content) for entry in entries}
    return [
        Problem(
            f"not to be signed: what it requires was not handed over (content {content[:12]}…)",
            f"{entry.place.name}: {manifest.easyconfig}",
            todo=AGAIN,
        )
        for entry in entries
        for manifest in [entry.manifest]
        for content in manifest.requires
        if (manifest.os, content) not in found and not good(target, manifest.os, content)
    ]
