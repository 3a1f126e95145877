"""A lock that one job solved for and others install: handed on with what it was made from.

    spack.lock   lock.json   the lock, and its record

Where a tree stands is part of what a lock in it was made from, for its environment names the
folders. It changes no hash, so a lock serves trees everywhere; but where Spack builds the compiler,
whose place in the tree is part of every hash, no lock is handed on (mvstack.ci.lock).
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mvstack.builders.spack.environments import files_of
from mvstack.builders.spack.lock import LOCK as LOCK
from mvstack.builders.spack.lock import RECORDS, inputs_of, known_inputs
from mvstack.plan.types import Plan
from mvstack.support.errors import Refused
from mvstack.support.files import write_atomically

RECORD = RECORDS[LOCK]
NAMES = (LOCK, RECORD)


def inputs(plan: Plan) -> str:
    """What decides a lock of ``plan`` wherever its tree stands."""
    return inputs_of(files_of(replace(plan, root="/root", tree="/root/tree")))


def hand_on(plan: Plan, to: Path) -> None:
    """Copy the lock of the tree of ``plan``, if there is one, into the folder ``to``."""
    write(texts(Path(plan.tree) / "rendered" / "spack"), to)
    note(plan, to)


def note(plan: Plan, folder: Path) -> None:
    """Write the record of the lock of ``plan`` in ``folder`` (`mvstack lock --to`)."""
    if (folder / LOCK).is_file():
        write_atomically(folder / RECORD, json.dumps({"inputs": inputs(plan)}) + "\n")


def texts(folder: Path) -> dict[str, str]:
    """The lock in ``folder`` and its record, as far as they are there, by name."""
    return {name: (folder / name).read_text() for name in NAMES if (folder / name).is_file()}


def write(files: Mapping[str, str], to: Path) -> None:
    """Write what :func:`texts` gave below ``to``, and nothing that it would not give."""
    for name in NAMES:
        if name in files:
            write_atomically(to / name, files[name])


def is_of(folder: Path, plan: Plan) -> bool:
    """Whether the lock in ``folder`` was solved for ``plan``."""
    return (folder / LOCK).is_file() and known_inputs(folder / RECORD) == inputs(plan)


def check(given: Path, plan: Plan) -> None:
    """Raise Refused for a lock that was made from something else, or does not say from what."""
    if given.is_file() and is_of(given.parent, plan):
        return
    record = given.parent / RECORD
    found = known_inputs(record)
    raise Refused(
        "this lock was solved for something else than this plan"
        if found
        else "this lock cannot be used: it, or what it was made from, is not there",
        str(given),
        found=f"inputs {found}" if found else f"nothing usable in {record}",
        allowed=f"inputs {inputs(plan)}",
        todo="hand on the whole lock of the job that planned this pipeline, and have every "
        "job run on the same commit",
        outcome="Nothing was installed.",
    )


def put(given: Path, plan: Plan, inputs_here: str) -> None:
    """Put the lock ``given`` in place in the tree of ``plan``. Raises as :func:`check`.

    ``inputs_here`` are those of the tree.
    """
    check(given, plan)
    tree = Path(plan.tree)
    target, kept, text = tree / "rendered" / "spack" / LOCK, tree / "records" / RECORD, ""
    if target.is_file() and known_inputs(kept) == inputs_here:
        text = target.read_text()
    if text != (handed := given.read_text()):
        write_atomically(target, handed)
        write_atomically(kept, json.dumps({"inputs": inputs_here}) + "\n")
