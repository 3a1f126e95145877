"""Measure several MPIs in turns: each round every operation with every MPI, the order rotated."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.measure.bench import Bench, Row, Wrong
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing, telling
from mvstack.support.progress import Progress
from mvstack.support.units import count, duration

QUIET = (0.1, 0.01)  # processors that others may use in a quiet round: these, and so many of each


@dataclass(frozen=True)
class Asked:
    """What a person asks of a comparison."""

    operations: list[str]
    rounds: int
    ranks: int


class Rows:
    """What was measured, a JSON object a line; what is there is not measured again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.is_file() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # a run that was killed as it wrote its last line
            file.write_text(whole)
        self.rows: list[Row] = [json.loads(line) for line in whole.splitlines()]

    def add(self, **row: Any) -> Row:
        """Keep one more."""
        with telling(Missing, "a result cannot be kept", where=str(self.file)):
            with self.file.open("a") as stream:
                stream.write(json.dumps(row) + "\n")
        self.rows.append(json.loads(json.dumps(row)))
        return row

    def find(self, **wanted: Any) -> Row | None:
        """The last row with these fields."""
        found = (row for row in reversed(self.rows) if wanted.items() <= row.items())
        return next(found, None)


def kept(benches: list[Bench], asked: Asked, folder: Path) -> Rows:
    """The rows of earlier runs with these MPIs, sizes and ranks: only they can be compared."""
    mpis = sorted(f"{one.mpi.name} {one.mpi.identity} {one.mpi.launch}" for one in benches)
    key = hashes.of(mpis, benches[0].sizes, asked.ranks, sorted(one.folder.name for one in benches))
    return Rows(folder / f"{key[:12]}.jsonl")


def compare(benches: list[Bench], asked: Asked, rows: Rows, progress: Progress) -> list[Row]:
    """See that every operation of every MPI is right, then measure those that are, in turns.

    The rows are kept as they come, and given back. An interrupted comparison goes on.
    """
    names = [one.mpi.name for one in benches]
    if len(set(names)) < len(names):
        raise InvalidInput("an MPI is named twice", found=", ".join(names))
    progress.total += 1 + asked.rounds
    pairs = [(name, bench) for name in asked.operations for bench in benches]
    with progress.step("verify", f"{count(len(pairs), 'operation')} by value") as step:
        for number, (name, bench) in enumerate(pairs, start=1):
            step.note(f"{number} of {len(pairs)}: {name} with {bench.mpi.name}")
            _verify(name, bench, asked.ranks, rows)
    right = [(n, b) for n, b in pairs if not _fault(rows, n, b)]
    for number in range(1, asked.rounds + 1):
        todo = [one for one in _order(right, number) if not _measured(rows, one, number)]
        left = _expected(rows, todo, asked.rounds - number, right)
        with progress.step("round", f"{number}, {duration(left)} to go in all") as step:
            for place, (name, bench) in enumerate(todo, start=1):
                step.note(f"{place} of {len(todo)}: {name} with {bench.mpi.name}")
                _measure(name, bench, number, asked.ranks, rows)
    return rows.rows


def _verify(name: str, bench: Bench, ranks: int, rows: Rows) -> None:
    """Verify an operation once, and measure it once to warm up and to know how long it takes."""
    if rows.find(kind="verified", mpi=bench.mpi.name, op=name):
        return
    row: Row = {"why": "", "seconds": 0.0}
    try:
        bench.verify(name, ranks)
        row["seconds"] = bench.measure(name, ranks)["seconds"]
    except Wrong as wrong:
        row["why"] = str(wrong)
    rows.add(kind="verified", mpi=bench.mpi.name, op=name, **row)


def _fault(rows: Rows, name: str, bench: Bench) -> str:
    """Why an operation is not measured; "" where it is."""
    of = {"mpi": bench.mpi.name, "op": name}
    failed = rows.find(kind="failed", **of) or rows.find(kind="verified", **of) or {}
    return str(failed.get("why", ""))


def _order(pairs: list[tuple[str, Bench]], number: int) -> Iterator[tuple[str, Bench]]:
    """Operation by operation, each round beginning with another MPI."""
    for name in dict.fromkeys(name for name, _ in pairs):
        own = [one for one in pairs if one[0] == name]
        start = number % len(own)
        yield from (*own[start:], *own[:start])


def _measured(rows: Rows, one: tuple[str, Bench], number: int) -> bool:
    of = {"mpi": one[1].mpi.name, "op": one[0]}
    return bool(rows.find(kind="value", round=number, **of) or rows.find(kind="failed", **of))


def _measure(name: str, bench: Bench, number: int, ranks: int, rows: Rows) -> None:
    of = {"mpi": bench.mpi.name, "op": name, "round": number}
    try:
        found = bench.measure(name, ranks)
    except Wrong as wrong:  # it was right before: its figures so far do not count either
        rows.add(kind="failed", why=f"in round {number}: {wrong}", **of)
        return
    found["values"] = sorted(found["values"].items())
    rows.add(kind="value", at=time.strftime("%FT%TZ", time.gmtime()), **found, **of)


def _expected(
    rows: Rows, todo: list[tuple[str, Bench]], more: int, right: list[tuple[str, Bench]]
) -> float:
    """Seconds that ``todo`` and ``more`` whole rounds will take, by what each took to warm up."""
    took = {
        (row["op"], row["mpi"]): row["seconds"] for row in rows.rows if row["kind"] == "verified"
    }
    one = sum(took[name, bench.mpi.name] for name, bench in right)
    return float(sum(took[name, bench.mpi.name] for name, bench in todo) + more * one)


def rounds_of(rows: list[Row], processors: int) -> list[Row]:
    """Each round with how busy others kept the machine: ``others`` in processors, ``quiet`` or not.

    A round is quiet where they took less than a tenth of a processor and a hundredth of all.
    """
    found = []
    values = [row for row in rows if row["kind"] == "value"]
    for number in sorted({row["round"] for row in values}):
        own = [row for row in values if row["round"] == number]
        seconds = sum(row["seconds"] for row in own)
        others = sum(row["others"] * row["seconds"] for row in own) / max(seconds, 0.001)
        found.append(
            {
                "round": number,
                "others": round(others, 3),
                "load": max(row["load"] for row in own),
                "quiet": others <= QUIET[0] + QUIET[1] * processors,
            }
        )
    return found

