"""What the sign job does: sign what was built with the site's own key, into the site's cache.

Everything is looked at before anything is signed: each entry must be signed by the key that lies
in its own handover, its archive must be the one that it names, and with a plan it must be a part of
that plan. One that is not stops the job, and nothing is signed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mvstack.cache import gpg, store, unpack
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.cache.push import good
from mvstack.ci import sign_spack
from mvstack.ci.handover import AGAIN, NOTHING_SIGNED, caches_below, keyring
from mvstack.plan.types import Plan
from mvstack.render.partition import render
from mvstack.support.errors import Problem, Refused
from mvstack.support.progress import Progress
from mvstack.tree.nodes import work
from mvstack.tree.records import Records

Row = dict[str, Any]


def sign(
    plan: Plan | None,
    take: Sequence[Path],
    to: str,
    key: gpg.Key,
    progress: Progress,
    *,
    lock: Path | None = None,
) -> list[Row]:
    """Put every entry of the handovers in ``take`` into the cache ``to``, signed with ``key``.

    ``key`` is one of the GPG home that is in effect (:func:`mvstack.cache.gpg.own_key`); the keys
    of handovers never come into that home. What ``to`` has already, whole and signed by a key that
    this home trusts, stays as it is. With ``plan`` only its packages are signed; for Spack's,
    ``lock`` is the lock that the jobs had (``handed``). A row for each entry,
    ``result`` "signed" or "already there". Raises Refused, with every problem of every entry, when
    one must not be signed.
    """
    target = place(to)
    target.writable()
    taken = caches_below(take)
    with progress.step("check", f"{len(taken)} handovers") as step:
        found = _checked(plan, taken, target, step.note)
        by_spack = sign_spack.checked(plan, taken, lock, step.note)
    return [
        *(_signed(entry, target, key, progress) for entry in found),
        *(sign_spack.signed(entry, target, key, progress) for entry in by_spack),
    ]


def _checked(
    plan: Plan | None, taken: list[Path], target: Place, note: Callable[[str], None]
) -> list[store.Entry]:
    """Every entry of the handovers, each content once and what others require first."""
    found: dict[tuple[str, str], store.Entry] = {}
    wrong: list[Problem] = []
    for cache in taken:
        source = place(str(cache))
        with keyring([cache]):  # its own key, and no other handover's
            for os_name, content in store.names(source):
                note(f"{len(found)} entries")
                try:
                    found.setdefault((os_name, content), _believed(source, os_name, content))
                except (NotBelieved, Unreachable) as error:
                    name = store.manifest_name(os_name, content)
                    wrong.append(
                        Problem(f"not to be signed: {error}", f"{cache}/{name}", todo=AGAIN)
                    )
    required = {one for entry in found.values() for one in entry.manifest.requires}
    wrong += _not_of(plan, found.values(), required) if plan and found else []
    wrong += _lacking(found, target)
    if wrong:
        raise Refused(*wrong, outcome=NOTHING_SIGNED)
    return sorted(found.values(), key=lambda one: one.manifest.content not in required)


def _believed(source: Place, os_name: str, content: str) -> store.Entry:
    """An entry signed by a trusted key, its archive hashed. Raises NotBelieved, NotWhole."""
    entry = store.find(source, os_name, content)
    if entry is None or source.folder is None:
        raise NotBelieved("it was there a moment ago")
    archive = source.folder / entry.archive
    if not archive.is_file():
        raise NotBelieved(f"its archive {entry.archive} is not there")
    unpack.hashed(entry.manifest, archive)
    return entry


def _not_of(plan: Plan, found: Iterable[store.Entry], required: set[str]) -> list[Problem]:
    """What is neither a package of ``plan`` nor required by one: nobody asked to have it built."""
    expected = {
        item.content: (item.node.easyconfig, str(item.module_file.relative_to(plan.tree)))
        for item in work(plan, render(plan), Records(Path(plan.tree)))
    }
    wrong = []
    for entry in found:
        manifest = entry.manifest
        is_for = (manifest.os, manifest.target)
        says = (manifest.easyconfig, manifest.module_file)
        wanted = says if manifest.content in required else expected.get(manifest.content)
        if (says, is_for) != (wanted, (plan.os, plan.target)):
            wrong.append(
                Problem(
                    "not to be signed: it is no part of the plan",
                    f"{entry.place.name}: {manifest.easyconfig}",
                    found=f"{manifest.module_file} for {' '.join(is_for)}, {manifest.content}",
                    allowed=f"packages of {plan.system}/{plan.partition} as they are planned now, "
                    f"for {plan.os} {plan.target}",
                    todo="sign with the plan that the build jobs had (the same commit); else see "
                    "what put it into this handover",
                )
            )
    return wrong


def _lacking(found: dict[tuple[str, str], store.Entry], target: Place) -> list[Problem]:
    """Entries whose companions are neither handed over nor in the site's cache."""
    return [
        Problem(
            f"not to be signed: what it requires was not handed over (content {content[:12]}…)",
            f"{entry.place.name}: {entry.manifest.easyconfig}",
            todo=AGAIN,
        )
        for (os_name, _), entry in found.items()
        for content in entry.manifest.requires
        if (os_name, content) not in found and not good(target, os_name, content)
    ]


def _signed(entry: store.Entry, target: Place, key: gpg.Key, progress: Progress) -> Row:
    manifest = entry.manifest
    what = f"{manifest.package} {manifest.version}"
    row = {
        "package": manifest.package,
        "version": manifest.version,
        "module": manifest.module,
        "easyconfig": manifest.easyconfig,
        "hash": manifest.content,
        "os": manifest.os,
        "target": manifest.target,
        "bytes": manifest.archive.size,
        "handed_by": entry.signer,
        "handover": entry.place.name,
    }
    if good(target, manifest.os, manifest.content):
        progress.skip("sign", what, "already there")
        return {"result": "already there", **row}
    with (
        progress.step("sign", what) as step,
        tempfile.TemporaryDirectory(prefix="mvstack-") as folder,
    ):
        # what is signed is what is looked at here, and not what lies in the handover later
        archive = Path(folder) / "archive.tar.gz"
        try:
            step.note(f"checking {manifest.archive.size / 1e6:.1f} MB")
            if not entry.place.bring(entry.archive, archive):
                raise unpack.NotWhole(f"its archive {entry.archive} is not there any more")
            unpack.check(manifest, archive)
        except (unpack.NotWhole, Unreachable) as error:
            raise Refused(
                Problem(f"not to be signed: {error}", entry.place.name, what, todo=AGAIN),
                outcome="What was signed before stays; this entry was not.",
            ) from None
        step.note("signing")
        signed = gpg.sign(manifest.text(), key.fingerprint)
        store.put(target, manifest, signed, archive, key)
    return {"result": "signed", **row}
