"""Figures over time: of all runs that are kept, here and in other releases of the same root."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from mvstack.report.records import Reader, Record, Run, began
from mvstack.test.history import LESS_IS_BETTER, MARGIN, figures


class Value(Record):
    """What one run measured."""

    started: str
    release: str
    value: float


class Course(Record):
    """A figure of a check with a product and device of any version: its values, the oldest first.

    ``ratio`` is what this release measured last by what the release ``since`` did. ``spread`` is by
    how much the runs of one of both differ: a ratio beyond it is "better" or "worse".
    """

    check: str
    mpi: str
    name: str
    size: int | None
    unit: str
    values: tuple[Value, ...]
    since: str = ""
    ratio: float = 1.0
    spread: float = 1.0
    beyond: str = ""


def courses_of(tree: Path, release: str, runs: list[Run]) -> tuple[Course, ...]:
    """The figures of ``runs``, which are the tree's, and of the same partition's other releases."""
    kept = {release: runs}
    for one in sorted(tree.parents[1].glob(f"*/{tree.name}/records")):
        reader, name = Reader(one), one.parents[1].name
        if reader.plan().release == name:  # no link, no other tree
            kept[name] = reader.runs()
    every = [(run, name) for name, some in kept.items() for run in some]
    found = defaultdict[tuple[str, str, str, int | None, str], list[Value]](list)
    for run, name in sorted(every, key=lambda one: began(one[0])):
        for key, row, _ in figures(run.model_dump()):
            found[key].append(Value(started=run.started, release=name, value=row["value"]))
    # the one before this release; where there is none, the newest after it
    since = max(set(kept) - {release}, key=lambda one: (one < release, one), default="")
    return tuple(_course(key, tuple(values), since, release) for key, values in found.items())


def _course(key: tuple[Any, ...], values: tuple[Value, ...], since: str, release: str) -> Course:
    """A figure, and how the last of this release is to that of the other, where both have one."""
    of = dict(zip(("check", "mpi", "name", "size", "unit"), key, strict=True))
    then, now = ([one.value for one in values if one.release == name] for name in (since, release))
    if not then or not now:
        return Course(**of, values=values)
    ratio, spread = now[-1] / then[-1], max(1 + MARGIN, *(max(x) / min(x) for x in (then, now)))
    word = "worse" if (ratio > 1) == (of["unit"] in LESS_IS_BETTER) else "better"
    beyond = "" if 1 / spread <= ratio <= spread else word
    return Course(**of, values=values, since=since, ratio=ratio, spread=spread, beyond=beyond)
