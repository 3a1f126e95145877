"""Install from caches: what they offer for a plan, what of it is refused, and the installing.

Everything that is offered is looked at before anything is installed: an entry that is not signed by
a trusted key, is not what its manifest says, cannot be moved here or lacks a library stops the
command, unless the user said that such packages are to be built instead.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.cache import store, unpack
from mvstack.cache.elf import lacking
from mvstack.cache.manifest import Manifest
from mvstack.cache.place import PUSH_AGAIN, NotBelieved, Place, Unreachable, place
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem, Refused
from mvstack.support.progress import Progress
from mvstack.tree.records import Records, Work, build_row

WAITING = ".from-cache"  # archives on their way, below the tree


@dataclass(frozen=True)
class Caches:
    """The caches to ask, in order. ``only``: build nothing; ``build_refused``: build instead.

    With ``pass_over`` an entry from a shorter path than this tree's is as good as none: a job of a
    pipeline builds it anew, at a path from which it fits everywhere.
    """

    places: tuple[Place, ...] = ()
    only: bool = False
    build_refused: bool = False
    pass_over: bool = False


class TooShort(NotBelieved):
    """An entry was built at a shorter path than that of the tree it would go to."""


@dataclass(frozen=True)
class Offer:
    """An entry and its archive here, to be installed after those that it requires."""

    entry: store.Entry
    archive: Path
    before: "tuple[Offer, ...]" = ()


@dataclass
class Offers:
    """What the caches offer, by easyconfig, and why other places had nothing."""

    found: dict[str, Offer] = field(default_factory=dict)
    refused: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)


def cache_names(more: Iterable[str] = ()) -> list[str]:
    """``more``, then the caches of MVSTACK_CACHES (separated by white space)."""
    return list(dict.fromkeys([*more, *os.environ.get("MVSTACK_CACHES", "").split()]))


def site_caches(
    more: Iterable[str] = (), only: bool = False, build_refused: bool = False
) -> Caches:
    """The caches of :func:`cache_names`. Raises InvalidInput."""
    names = cache_names(more)
    if only and not names:
        todo = "--cache DIR|URL, or MVSTACK_CACHES"
        raise Refused("--cache-only needs a cache, and none is named", todo=todo)
    return Caches(tuple(place(name) for name in names), only, build_refused)


def offered(caches: Caches, os_name: str, target: str) -> set[tuple[str, str]]:
    """Easyconfig and accepted bytes of what the caches' indexes list for such a machine.

    A hint of what could be had, for choosing an MPI: nothing of it is believed yet.
    """
    found = set()
    for one in caches.places:
        with contextlib.suppress(Unreachable):
            for row in store.rows(one):
                if (row.os, row.target) == (os_name, target):
                    found.add((row.easyconfig, row.accepted))
    return found


def offers(
    caches: Caches, items: Iterable[Work], plan: Plan, progress: Progress
) -> dict[str, Offer]:
    """By easyconfig what the caches have for ``items``, their archives brought here and hashed.

    Nothing of the tree is changed but its folder :data:`WAITING`; the root's lock must be held.
    Raises Refused, with every problem of every entry, when an entry must not be used and may not
    be built instead, or when nothing may be built and something is not offered.
    """
    items = list(items)
    if not caches.places:
        return {}
    result = Offers()
    clear(plan)
    (Path(plan.tree) / WAITING).mkdir(parents=True)
    with progress.step("cache", f"look for {len(items)} packages") as step:
        for item in items:
            step.note(item.node.key)
            if offer := _look(caches, plan, result, item):
                result.found[item.node.key] = offer
    for name, why in result.unreachable.items():
        progress.skip("cache", name, f"cannot be read: {why}")
    for name, why in result.passed_over.items():
        progress.skip("cache", name, why)
    wrong: list[Problem] = []
    if result.refused and not caches.build_refused:
        wrong = refusals(result.refused)
    elif caches.only:
        absent = [item for item in items if item.node.key not in result.found]
        wrong = _not_offered(absent, caches, plan, result)
    if wrong:
        clear(plan)
        raise Refused(*wrong, outcome="Nothing was installed.")
    return result.found


def clear(plan: Plan) -> None:
    """Remove the archives that :func:`offers` brought, also those of a run that was killed."""
    shutil.rmtree(Path(plan.tree) / WAITING, ignore_errors=True)


def install(
    offer: Offer, item: Work, plan: Plan, records: Records, progress: Progress
) -> dict[str, Any]:
    """Install one offered package; its row for builds.jsonl. Raises Refused when it is not whole.

    The lock of the root must be held, and the package's old module be gone.
    """
    tree, node, manifest = Path(plan.tree), item.node, offer.entry.manifest
    row, began = build_row(node, plan), time.monotonic()
    place = offer.entry.place.name
    with progress.step("install", f"{node.title} from {place}") as step:
        for one in offer.before:
            own = one.entry.manifest
            there = (tree / own.module_file).is_file()
            if not there or records.hashes().get(own.easyconfig) != own.content:
                step.note(f"{own.easyconfig}, which it requires")
                (tree / own.module_file).unlink(missing_ok=True)
                _unpack(one, tree)
                records.built(own.easyconfig, own.content)
        step.note(f"{manifest.archive.size / 1e6:.1f} MB")
        records.begin(node.key, node.content)
        _unpack(offer, tree)
        records.built(node.key, node.content)
    sources = manifest.build.get("sources", [])
    for source in sources:
        records.append("sources", {"package": node.name, **source})
    row |= {
        "log": "",
        "sources": sources,
        "result": "cached",
        "seconds": round(time.monotonic() - began, 1),
        "steps": {},
        "cache": place,
        "signed_by": offer.entry.signer,
        "built_in": manifest.tree,
        "built": {key: value for key, value in manifest.build.items() if key != "sources"},
    }
    records.append("builds", row)
    return row


def _look(caches: Caches, plan: Plan, result: Offers, item: Work) -> Offer | None:
    """The first place's entry that may be used; why others may not goes into ``result``."""
    for one in caches.places:
        try:
            if offer := _offer(one, plan, item.node.content, item):
                return offer
        except Unreachable as why:
            result.unreachable[one.name] = str(why)
        except NotBelieved as error:
            if caches.pass_over and isinstance(error, TooShort):
                result.passed_over[item.node.key] = f"{one.name}: {error}"
                continue
            reason = (one.name, str(error), error.todo)
            result.refused.setdefault(reason, []).append(item.node.key)
    return None


def _offer(place: Place, plan: Plan, content: str, item: Work | None = None) -> Offer | None:
    """What ``place`` has under a content hash, for ``item`` or for what no plan names, hashed here.

    Raises NotBelieved, Unreachable.
    """
    entry = store.find(place, plan.os, content)
    if entry is None:
        return None
    _fits(entry.manifest, plan, item)
    before = []
    for needed in entry.manifest.requires:
        if (one := _offer(place, plan, needed)) is None:
            raise NotBelieved(f"what it requires is not in the cache (content {needed[:12]}…)")
        before.append(one)
    archive = Path(plan.tree) / WAITING / Path(store.archive_name(entry.manifest)).name
    if not archive.is_file():  # required by several
        try:
            entry.bring(archive)
        except unpack.NotWhole:
            archive.unlink()
            raise
    return Offer(entry, archive, tuple(before))


def _fits(manifest: Manifest, plan: Plan, item: Work | None) -> None:
    """Compare an entry with the plan that asks for it and with this machine. Raises NotBelieved."""
    if item:
        module = str(item.module_file.relative_to(plan.tree))
        wanted = ", ".join((item.node.key, plan.target, module))
        found = ", ".join((manifest.easyconfig, manifest.target, manifest.module_file))
        if found != wanted:
            raise NotBelieved(f"its manifest says {found} and the plan {wanted}")
    if why := unpack.immovable(manifest, Path(plan.tree)):
        longest = len(manifest.tree) - (len(plan.tree) - len(plan.root))
        raise TooShort(
            why,
            f"give a --root of at most {longest} characters (this one has {len(plan.root)}), or "
            "build and push again below a longer --root",
        )
    if missing := lacking(manifest.needs):
        raise NotBelieved(
            f"it needs {', '.join(missing)}, which this machine lacks",
            "install the distribution's packages that have them "
            "(environments/policy/prerequisites.yaml names those that builds use)",
        )


def _unpack(offer: Offer, tree: Path) -> None:
    try:
        unpack.install(offer.entry.manifest, offer.archive, tree)
    except unpack.NotWhole as error:
        raise Refused(
            f"{offer.entry.manifest.easyconfig} in this cache is refused: {error}",
            offer.entry.place.name,
            found=store.archive_name(offer.entry.manifest),
            because="its signature and its archive's hash hold: it was pushed damaged",
            todo=f"{PUSH_AGAIN}; or leave this cache out",
            outcome="What was installed before stays; no module of this package can be loaded.",
        ) from None
    offer.archive.unlink(missing_ok=True)


def refusals(refused: dict[tuple[str, str, str], list[str]]) -> list[Problem]:
    """A problem for each cache, reason and what to do, with the packages that it is about."""
    problems = []
    for (cache, why, todo), names in refused.items():
        what = f"{names[0]} of this cache is refused: {why}"
        if len(names) > 1:
            what = f"{len(names)} packages of this cache are refused: {why}"
        todo = f"{todo or PUSH_AGAIN}; or build here: --build-refused"
        problems.append(Problem(what, cache, found=", ".join(names), todo=todo))
    return problems


def _not_offered(absent: list[Work], caches: Caches, plan: Plan, result: Offers) -> list[Problem]:
    asked = ", ".join(one.name for one in caches.places)
    return [
        Problem(
            f"{item.node.key} is in no cache, and --cache-only builds nothing",
            f"{plan.system}/{plan.partition}",
            found=f"asked for {plan.os}, content {item.node.content}: {asked}",
            because="; ".join(f"{name}: {text}" for name, text in result.unreachable.items()),
            todo=f"{PUSH_AGAIN}; or build it here, without --cache-only",
        )
        for item in absent
    ]
