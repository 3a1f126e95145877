"""What the sign job does: sign what was built with the site's own key, into the site's cache.

Everything is looked at before anything is signed: each entry must be signed by the key that lies
in its own handover, its archive must be the one that it names, and with a plan it must be a part of
that plan. If one is not, the job stops and nothing is signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.ci import sign_easybuild, sign_spack
from mvstack.ci.handover import AGAIN, Entry, caches_below, keyring
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem, Refused
from mvstack.support.progress import Progress

Row = dict[str, Any]
E = TypeVar("E", bound=Entry)


def sign(
    plan: Plan | None,
    take: Sequence[Path],
    to: str,
    key: gpg.Key,
    progress: Progress,
    lock: Path | None = None,
) -> list[Row]:
    """Put every entry of the handovers in ``take`` into the cache ``to``, signed with ``key``.

    ``key`` is one of the GPG home that is in effect (:func:`mvstack.cache.gpg.own_key`); the keys
    of handovers never come into that home. What ``to`` has already, whole and signed by a key that
    this home trusts, stays as it is. With ``plan`` only its packages are signed; for Spack's,
    ``lock`` is the lock that the jobs had. A row for each entry, ``result`` "signed" or "already
    there". Raises Refused, with every problem of every entry, when one must not be signed.
    """
    target = place(to)
    target.writable()
    taken = caches_below(take)
    with progress.step("check", f"{len(taken)} handovers") as step:
        built, wrong = _read(taken, sign_easybuild.names, sign_easybuild.read, step.note)
        wrong += sign_easybuild.problems(plan, built, target)
        by_spack, unreadable = _read(taken, sign_spack.names, sign_spack.read, step.note)
        wrong += [*unreadable, *(sign_spack.problems(by_spack, lock) if plan else [])]
    if wrong:
        raise Refused(*wrong, outcome="Nothing was signed.")
    entries: list[Entry] = [*sign_easybuild.in_order(built), *by_spack]
    return [_signed(entry, target, key, progress) for entry in entries]


def _read(
    taken: list[Path],
    names: Callable[[Path], list[str]],
    read: Callable[[Place, str], E],
    note: Callable[[str], None],
) -> tuple[list[E], list[Problem]]:
    """Every entry of a kind, each content once, and what is wrong with others."""
    found: dict[str, E] = {}
    wrong: list[Problem] = []
    for cache in taken:
        if not (there := names(cache)):
            continue
        with keyring([cache]):  # its own key, and no other handover's
            for name in there:
                note(f"{len(found)} entries")
                try:
                    entry = read(place(str(cache)), name)
                    found.setdefault(entry.content, entry)
                except (NotBelieved, Unreachable) as error:
                    wrong.append(
                        Problem(f"not to be signed: {error}", f"{cache}/{name}", todo=AGAIN)
                    )
    return list(found.values()), wrong


def _signed(entry: Entry, target: Place, key: gpg.Key, progress: Progress) -> Row:
    if entry.good(target):
        progress.skip("sign", entry.what, "already there")
        return {"result": "already there", **entry.row()}
    with progress.step("sign", entry.what):
        try:
            entry.put(target, key)
        except (NotBelieved, Unreachable) as error:
            raise Refused(
                f"not to be signed: {error}",
                entry.what,
                todo=AGAIN,
                outcome="What was signed before stays; this entry was not.",
            ) from None
    return {"result": "signed", **entry.row()}
