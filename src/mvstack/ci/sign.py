"""What the sign job does: sign what was built with the site's own key, into the site's cache.

Everything is looked at before anything is signed: each entry must be signed by the key that lies
in its own handover, its archive must be the one that it names, and it must be a part of the plan.
If one is not, the job stops and nothing is signed.
"""

from collections.abc import Sequence
from pathlib import Path

from mvstack.builders.base import Entry, Note, Row, builder_of, builders, rendered_here
from mvstack.cache import gpg
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.ci.handover import AGAIN, caches_below, keyring
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem, Refused
from mvstack.support.progress import Progress


def sign(
    plan: Plan,
    take: Sequence[Path],
    to: str,
    key: gpg.Key,
    progress: Progress,
    lock: Path | None = None,
) -> list[Row]:
    """Put every entry of the handovers in ``take`` into the cache ``to``, signed with ``key``.

    ``key`` is one of the GPG home that is in effect (:func:`mvstack.cache.gpg.own_key`); the keys
    of handovers never come into that home. What ``to`` has already, whole and signed by a key that
    this home trusts, stays as it is. ``lock`` is the lock that the jobs had, if a solver decided.
    A row for each entry, ``result`` "signed" or "already there". Raises Refused, with every problem
    of every entry, when one must not be signed.
    """
    target = place(to)
    target.writable()
    taken = caches_below(take)
    with progress.step("check", f"{len(taken)} handovers") as step:
        entries, wrong = _read(taken, step.note)
        required = {content for entry in entries for content in entry.requires}
        wrong += [*_strange(plan, lock, entries, required), *_lacking(entries, target)]
    if wrong:
        raise Refused(*wrong, outcome="Nothing was signed.")
    first = sorted(entries, key=lambda one: one.content not in required)
    return [_signed(entry, target, key, progress) for entry in first]


def _read(taken: Sequence[Path], note: Note) -> tuple[list[Entry], list[Problem]]:
    """Every entry, each content once, and what is wrong with others."""
    found: dict[str, Entry] = {}
    wrong: list[Problem] = []
    for cache in taken:
        with keyring([cache]):  # its own key, and no other handover's
            for builder in builders().values():
                for name, read in builder.entries(place(str(cache))):
                    note(f"{len(found)} entries")
                    try:
                        entry = read()
                        found.setdefault(entry.content, entry)
                    except (NotBelieved, Unreachable) as error:
                        where = f"{cache}/{name}"
                        wrong.append(Problem(f"not to be signed: {error}", where, todo=AGAIN))
    return list(found.values()), wrong


def _strange(
    plan: Plan, lock: Path | None, entries: Sequence[Entry], required: set[str]
) -> list[Problem]:
    """What is neither in ``plan`` nor required by what is: nobody asked to have it built."""
    if not entries:
        return []
    graph = builder_of(plan.builder).resolve(rendered_here(plan, lock))
    expected = {node.content: node for node in graph.nodes.values()}
    return [
        Problem(
            "not to be signed: it is not part of the plan",
            f"{entry.place.name}: {entry.easyconfig or entry.what}",
            found=f"{entry.what}, {entry.content}",
            allowed=f"packages of {graph.name} as they are planned now, for {plan.os} "
            f"{plan.target}, by {lock or graph.by}",
            todo="sign with the plan and the lock that the build jobs had (the same commit); else "
            "see what put it into this handover",
        )
        for entry in entries
        if not entry.is_of(expected.get(entry.content), plan)
        or not (entry.content in required or entry.content in expected)
    ]


def _lacking(entries: Sequence[Entry], target: Place) -> list[Problem]:
    """Entries that require what is neither handed over nor in the site's cache."""
    found = {entry.content for entry in entries}
    return [
        Problem(
            f"not to be signed: what it requires was not handed over (content {content[:12]}…)",
            f"{entry.place.name}: {entry.easyconfig}",
            todo=AGAIN,
        )
        for entry in entries
        for content in entry.requires
        if content not in found and not entry.good(target, content)
    ]


def _signed(entry: Entry, target: Place, key: gpg.Key, progress: Progress) -> Row:
    row = {
        "package": entry.package,
        "version": entry.version,
        "easyconfig": entry.easyconfig,
        "hash": entry.content,
        "bytes": entry.size,
        "handed_by": entry.signer,
        "handover": entry.place.name,
    }
    if entry.good(target, entry.content):
        progress.skip("sign", entry.what, "already there")
        return {"result": "already there", **row}
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
    return {"result": "signed", **row}
