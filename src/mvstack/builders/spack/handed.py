"""A lock that one job solved for and others install: handed on with what it was made from.

    spack.lock            lock.json            the stack's, and its record
    compiler/spack.lock   lock-compiler.json   the compiler's, where Spack builds that too

Where a tree stands is part of what a lock in it was made from, for its environment names the
folders. It changes no hash, so a lock serves trees everywhere; except where Spack builds the
compiler, whose place in the tree is part of every hash.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mvstack.builders.spack.environments import files_of, inputs_of
from mvstack.builders.spack.lock import LOCK as LOCK
from mvstack.builders.spack.lock import RECORDS, known_inputs
from mvstack.plan.types import Plan
from mvstack.render.spack import compiler_of
from mvstack.support.errors import Refused
from mvstack.support.files import write_atomically

NAMES = (*RECORDS, *RECORDS.values())


def inputs(plan: Plan) -> str:
    """What decides a lock of ``plan`` wherever its tree stands; see above for the exception."""
    if not compiler_of(plan)["built"]:
        plan = replace(plan, root="/root", tree="/root/tree")
    return inputs_of(files_of(plan))


def hand_on(plan: Plan, to: Path) -> None:
    """Copy the locks of the tree of ``plan``, with records, into the folder ``to``."""
    write(texts(Path(plan.tree) / "rendered" / "spack"), to)
    note(plan, to)


def note(plan: Plan, folder: Path) -> None:
    """Write the records of locks of ``plan`` in ``folder`` (`mvstack spack lock --to`)."""
    for name, record in RECORDS.items():
        if (folder / name).is_file():
            write_atomically(folder / record, json.dumps({"inputs": inputs(plan)}) + "\n")


def texts(folder: Path) -> dict[str, str]:
    """The locks in ``folder`` and their records, as far as they are there, by name."""
    return {name: (folder / name).read_text() for name in NAMES if (folder / name).is_file()}


def write(files: Mapping[str, str], to: Path) -> None:
    """Write what :func:`texts` gave below ``to``, and nothing that it would not give."""
    for name in NAMES:
        if name in files:
            write_atomically(to / name, files[name])


def check(given: Path, plan: Plan) -> list[tuple[str, Path, str]]:
    """Name, file and record of the lock ``given`` and of the compiler's beside it.

    Raises Refused when one was made from something else than ``plan``, or does not say from what.
    """
    folder, wanted = given.parent, inputs(plan)
    pairs = []
    for name, record in RECORDS.items():
        source = given if name == LOCK else folder / name
        if not source.is_file() and name != LOCK:
            continue
        found = known_inputs(folder / record)
        if not source.is_file() or found != wanted:
            ours = compiler_of(plan)["built"]
            raise Refused(
                "this lock was solved for something else than this plan"
                if found
                else "this lock cannot be used: it, or what it was made from, is not there",
                str(source),
                found=f"inputs {found}" if found else f"nothing usable in {folder / record}",
                allowed=f"inputs {wanted}",
                because="Spack builds the compiler of this plan, and its path is part of every hash"
                if ours
                else "",
                todo="hand on the whole lock of the job that planned this pipeline, and have every "
                f"job run on the same commit{', below the same root' if ours else ''}",
                outcome="Nothing was installed.",
            )
        pairs.append((name, source, record))
    return pairs


def is_of(folder: Path, plan: Plan) -> bool:
    """Whether the lock in ``folder``, and the compiler's beside it, were solved for ``plan``."""
    try:
        check(folder / LOCK, plan)
    except Refused:
        return False
    return True


def put(given: Path, plan: Plan, inputs_here: str) -> None:
    """Put the lock ``given``, and the compiler's beside it, in place in the tree of ``plan``.

    ``inputs_here`` are those of the tree. Raises Refused when the lock was made from something else
    or does not say from what.
    """
    tree = Path(plan.tree)
    for name, source, record in check(given, plan):
        target, kept, text = tree / "rendered" / "spack" / name, tree / "records" / record, ""
        if target.is_file() and known_inputs(kept) == inputs_here:
            text = target.read_text()
        if text != (handed := source.read_text()):
            write_atomically(target, handed)
            write_atomically(kept, json.dumps({"inputs": inputs_here}) + "\n")
