"""What EasyBuild needs to install a plan: its sources, or binaries of all of it."""

import tempfile
from pathlib import Path

from mvstack.builders.base import carried, graph_of
from mvstack.builders.easybuild.install import specs_of
from mvstack.cache import gpg, store
from mvstack.cache.place import NotBelieved, Place, Unreachable
from mvstack.cache.push import look, push
from mvstack.cache.use import Caches
from mvstack.plan.easybuild import build_order
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.sources.fetch import Fetcher
from mvstack.sources.store import Store
from mvstack.support.errors import Refused
from mvstack.support.progress import Progress
from mvstack.tree.records import kept_plan


def sources(plan: Plan, fetcher: Fetcher, target: Path, progress: Progress) -> list[str]:
    """Bring every source of ``plan`` into the mirror ``target``; their file names.

    They go through the mirror of this root first, as for an installation. Raises SourceError, and
    Refused for a compiler that EasyBuild builds itself, by easyconfigs of its own.
    """
    files = render(plan)
    if plan.compiler["origin"] != "system":
        raise Refused(
            f"{build_order(plan)[0].key} is EasyBuild's own, and so are the sources of all that it "
            "needs",
            f"{plan.system}/{plan.partition}",
            because="EasyBuild fetches them itself; they do not go through the source mirror",
            todo="mvstack bundle --binaries, from a machine where it is installed",
            outcome="The bundle is not complete.",
        )
    mirror = Store(target)
    found = []
    with (
        progress.step("sources", f"of {plan.system}/{plan.partition}") as step,
        tempfile.TemporaryDirectory(prefix="mvstack-") as folder,
    ):
        rendered = Path(folder)
        write(files, rendered)
        for node in build_order(plan):
            for spec in specs_of(node.key, rendered):
                step.note(spec.filename)
                sha256 = carried(fetcher, mirror, spec).sha256
                mirror.link_easybuild(spec.software, spec.filename, sha256)
                found.append(spec.filename)
    return sorted(set(found))


def binaries(
    plan: Plan, caches: Caches, target: Place, progress: Progress
) -> tuple[list[str], int]:
    """Bring an entry for every package of ``plan`` into the cache ``target``; see base.Builder.

    From the tree that is installed here, and from ``caches``. Raises Refused for what neither has.
    """
    wanted = {node.content: key for key, node in graph_of(plan).nodes.items()}
    try:
        data = kept_plan(Path(plan.tree))
    except (OSError, ValueError):
        data = None
    signers: dict[str, None] = {}
    with progress.step("binaries", f"of {plan.system}/{plan.partition}") as step:
        for one in caches.places:
            for content in list(wanted):
                if signer := _copied(one, target, plan.os, content):
                    step.note(wanted.pop(content))
                    signers[signer] = None
        if wanted and data:
            own = gpg.own_key()
            rows = push(data, target, own, progress)
            if [name for row in rows if (name := wanted.pop(row["hash"], ""))]:
                signers[own.fingerprint] = None
    if wanted:
        asked = ", ".join([plan.tree, *(one.name for one in caches.places)])
        raise Refused(
            f"there is no binary of {', '.join(wanted.values())}",
            f"{plan.system}/{plan.partition}",
            found=f"asked for these very contents: {asked}",
            todo=f"mvstack install {plan.system}/{plan.partition} here first, or name a cache "
            "that has them: --cache",
            outcome="The bundle is not complete.",
        )
    return list(signers), _longest_root(plan, target)


def _longest_root(plan: Plan, cache: Place) -> int:
    """How many characters an install root may have, for all binaries of ``cache`` to fit."""
    below = len(plan.tree) - len(plan.root)
    return min(
        (
            len(one.manifest.tree) - below
            for one in look(cache, whole=False)
            if one.manifest and one.manifest.in_binary
        ),
        default=0,
    )


def _copied(source: Place, target: Place, os_name: str, content: str) -> str:
    """Copy an entry with all that it requires; who signed it, "" when ``source`` has none.

    Raises Refused when it must not be used.
    """
    try:
        entry = store.find(source, os_name, content)
        if entry is None:
            return ""
        for needed in entry.manifest.requires:
            if not _copied(source, target, os_name, needed):
                raise NotBelieved(f"what it requires is not there ({needed[:12]}…)")
        with entry.brought() as archive:
            signed = source.read(store.manifest_name(os_name, content)) or b""
            key = next(key for key in gpg.trusted() if key.fingerprint == entry.signer)
            store.put(target, entry.manifest, signed.decode(), archive, key)
    except Unreachable:
        return ""
    except NotBelieved as error:
        raise Refused(
            f"an entry of this cache is refused: {error}",
            source.name,
            found=store.manifest_name(os_name, content),
            todo="mvstack cache verify names all such entries; or leave this cache out",
            outcome="The bundle is not complete.",
        ) from None
    return entry.signer
