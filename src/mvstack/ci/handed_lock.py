"""Spack's lock on its way through a pipeline: from job to job, and signed beside the packages.

Between jobs it is a folder ``lock`` in what is handed over, with what ``handed``
keeps: the one job that makes a whole partition solved for it, or the job `lock` took it from the
job that planned. In the site's cache it is one file with a signature beside it, filed under what
it was made from: who deploys takes the lock that was validated, and does not solve again.

    locks/<system>-<partition>/<inputs>/lock.json
    locks/<system>-<partition>/<inputs>/lock.json.asc
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mvstack.builders.spack import handed
from mvstack.cache import gpg
from mvstack.cache.place import Place, Unreachable, place
from mvstack.ci.handover import AGAIN, PARTS
from mvstack.plan.types import Plan
from mvstack.support.errors import Problem, Refused
from mvstack.support.files import write_atomically
from mvstack.support.progress import Progress

FOLDER = "lock"
"""Of a lock in a handover."""


def taken(folders: Iterable[Path]) -> Path | None:
    """The spack.lock in handovers below ``folders``; None when there is none.

    Raises Refused when there are several that differ: then jobs installed by different ones.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for top, names, _ in os.walk(folder):
            names[:] = sorted(name for name in names if name not in PARTS)
            one = Path(top) / FOLDER
            if (one / handed.LOCK).is_file():
                _no_link(one)
                found.setdefault(_text(one), one / handed.LOCK)
    if len(found) > 1:
        raise Refused(
            Problem(
                "several locks were handed over, and they differ",
                found=", ".join(map(str, found.values())),
                todo="run the whole pipeline again: all of its jobs install by one lock",
            )
        )
    return next(iter(found.values()), None)


def put(plan: Plan, lock: Path, to: str, key: gpg.Key, progress: Progress) -> None:
    """Put ``lock`` into the site's cache ``to``, signed with ``key``, in place of an earlier one.

    Call it when all that the lock names is there. Raises Refused for a lock of another plan.
    """
    handed.check(lock, plan)
    target, text = place(to), _text(lock.parent)
    file = target.writable() / _name(plan)
    signature = file.with_name(f"{file.name}.asc")
    what = f"the lock of {plan.system}/{plan.partition}"
    if _there(target, plan) == text:
        progress.skip("sign", what, "already there")
        return
    with progress.step("sign", what):
        signed = gpg.sign_detached(text.encode(), key.fingerprint)
        file.parent.mkdir(parents=True, exist_ok=True)
        # an interruption between the two leaves a signature that does not fit, and is seen
        signature.unlink(missing_ok=True)
        write_atomically(file, text)
        write_atomically(signature, signed)


def signed(plan: Plan, caches: Sequence[str], to: Path) -> Path | None:
    """The spack.lock of ``plan`` from the first of ``caches`` that has one, written below ``to``.

    It must be signed by a key that is trusted here (:func:`mvstack.ci.handover.keyring`). None when
    no cache that can be asked has it. Raises Refused for one that must not be used.
    """
    for name in caches:
        try:
            text = _believed(place(name), plan)
        except Unreachable:
            continue
        except gpg.BadSignature as error:
            raise Refused(
                Problem(
                    f"the lock of {plan.system}/{plan.partition} in this cache is refused: {error}",
                    f"{name}: {_name(plan)}",
                    todo=error.todo or "have its pipeline run again: the job `sign` puts it there",
                ),
                outcome="Nothing was installed.",
            ) from None
        if text:
            handed.write(json.loads(text), to)
            return to / handed.LOCK
    return None


def whole(source: Place, plan: Plan) -> bool:
    """Whether a cache has the signed lock of ``plan``, and so all that it names (:func:`put`).

    Raises BadSignature, Unreachable.
    """
    return bool(_believed(source, plan))


def needed(plan: Plan, lock: Path | None, asked: Sequence[str | Path]) -> Path:
    """``lock``. Raises Refused when it is None: an answer of the solver's own would be another."""
    if lock is not None:
        return lock
    raise Refused(
        Problem(
            "there is no lock of what Spack is to install",
            f"{plan.system}/{plan.partition}",
            found=f"none in: {', '.join(map(str, asked)) or 'no place at all'}",
            because="packages are kept under hashes that the lock names, and solving again may "
            "give others",
            todo="run the whole pipeline again at this commit: its jobs hand the lock on, and the "
            "job `sign` puts it into the site's cache",
        ),
        outcome="Nothing was installed.",
    )


def _no_link(folder: Path) -> None:
    """Raise Refused for a link: what it names belongs to the job that reads it, e.g. its key."""
    if links := [one for one in (folder, *folder.rglob("*")) if one.is_symlink()]:
        raise Refused(
            Problem("a lock was handed over as a link", ", ".join(map(str, links)), todo=AGAIN)
        )


def _name(plan: Plan) -> str:
    """The lock's file, from the cache."""
    return f"locks/{plan.system}-{plan.partition}/{handed.inputs(plan)}/lock.json"


def _text(folder: Path) -> str:
    """All of a lock as one text, the same for the same content."""
    return json.dumps(handed.texts(folder), indent=1, sort_keys=True) + "\n"


def _believed(source: Place, plan: Plan) -> str:
    """The text of a signed lock; "" where there is none. Raises BadSignature, Unreachable."""
    name = _name(plan)
    text = source.read(name)
    if text is None:
        return ""
    signature = source.read(f"{name}.asc")
    if signature is None:
        raise gpg.BadSignature("its signature is not there")
    gpg.verified_detached(text, signature)
    return text.decode()


def _there(target: Place, plan: Plan) -> str:
    try:
        return _believed(target, plan)
    except (gpg.BadSignature, Unreachable):
        return ""
