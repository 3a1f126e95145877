"""Measure several MPIs in turns: each round every operation with every MPI, the order rotated."""

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.measure.bench import WARM_UP, Bench, Wrong
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing, telling
from mvstack.support.progress import Progress
from mvstack.support.units import count, duration
from mvstack.tree.folder import writable

QUIET = (0.1, 0.01)  # processors that others may use in a quiet round, and the part of all of them
GUESS, VERIFYING = 2.0, 3  # seconds of a run of two ranks; runs of one that is verified
TUNED = "MVAPICH_STACK_TUNED"  # set by a module that sets what was tuned
Row = dict[str, Any]
Pair = tuple[str, Bench]


def machine(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Where it is measured: this host, or in a job so many nodes of a partition of a cluster."""
    of_job = ("SLURM_CLUSTER_NAME", "SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE")
    counts = ("SLURM_JOB_NUM_NODES", "FLUX_JOB_NNODES")
    nodes = "".join(environment.get(name, "") for name in counts)
    if file := environment.get("PBS_NODEFILE") or environment.get("LSB_DJOB_HOSTFILE", ""):
        with telling(Missing, "the nodes of this job cannot be read", where=file):
            nodes = str(len({*Path(file).read_text().split()}))
    job = [environment.get(name, "") for name in of_job]
    return [*job, nodes] if nodes else [platform.node()]


class Over(Exception):
    """The time is used up."""


class Rows:
    """What was measured, a JSON object a line; what is there is not measured again."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: list[Row] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        data = file.read_bytes()
        if (end := data.rfind(b"\n") + 1) < len(data):
            os.truncate(file, end)  # the line that a killed run was writing
        for number, line in enumerate(data[:end].splitlines(), start=1):
            try:
                row = json.loads(line)
                kind = row["kind"]
            except (ValueError, TypeError, KeyError):
                todo = "delete that line, and run the same command again"
                raise InvalidInput("this line is damaged", f"{file}:{number}", todo=todo) from None
            # what could not run at all may run now; what failed in a later round stays out
            if kind != "failed" or "round" in row:
                self.rows.append(row)

    def add(self, **row: Any) -> None:
        """Keep one more, with the time."""
        row["at"] = time.strftime("%FT%TZ", time.gmtime())
        with writable("results cannot be kept", self.file.parent), self.file.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        self.rows.append(json.loads(json.dumps(row)))

    def find(self, kind: str, **wanted: Any) -> Row | None:
        """The last row of that kind with these fields."""
        wanted["kind"] = kind
        return next((row for row in reversed(self.rows) if wanted.items() <= row.items()), None)


@dataclass(frozen=True)
class Comparison:
    """What is measured: operations with so many ranks, of MPIs, in so many rounds.

    At the time ``until`` of the monotonic clock it raises Over, and goes on when it is run again.
    """

    benches: list[Bench]
    operations: list[str]
    ranks: int
    rounds: int
    until: float = math.inf

    def kept(self, folder: Path) -> Rows:
        """Rows of earlier runs that compare: of these MPIs, sizes, ranks, warm-up and machine."""
        mpis = sorted(
            (x.mpi.name, x.mpi.launch, x.folder.name, x.mpi.environment.get(TUNED, ""), WARM_UP)
            for x in self.benches
        )
        of = [x.content for x in self.benches[:1] if x.content]
        key = hashes.of(mpis, *of, self.benches[0].sizes, self.ranks, machine())
        return Rows(folder / f"{key[:12]}.jsonl")

    def run(self, rows: Rows, progress: Progress) -> None:
        """See that every operation is right, then measure those that are, in turns, into ``rows``.

        What an earlier run has in ``rows`` is not done again.
        """
        progress.total += 1 + self.rounds
        pairs = [(name, bench) for name in self.operations for bench in self.benches]
        new = [x for x in pairs if not rows.find("verified", op=x[0], mpi=x[1].mpi.name)]
        left = sum(self._left(rows, pairs, x) for x in range(1, self.rounds + 1))
        about = duration(left + VERIFYING * GUESS * len(new))
        what = f"{count(len(pairs), 'operation')} by value, about {about} to the end"
        with progress.step("verify", what) as step:
            for place, (name, bench) in enumerate(pairs, start=1):
                step.note(f"{place} of {len(pairs)}: {name} with {bench.mpi.name}")
                self._verify(name, bench, rows)
        for number in range(1, self.rounds + 1):
            todo = [one for one in self._order(number) if not self._done(rows, one, number)]
            left = sum(self._left(rows, pairs, x) for x in range(number, self.rounds + 1))
            with progress.step("round", f"{number}, {duration(left)} to the end") as step:
                for place, (name, bench) in enumerate(todo, start=1):
                    step.note(f"{place} of {len(todo)}: {name} with {bench.mpi.name}")
                    self._measure(name, bench, number, rows)

    def _left(self, rows: Rows, pairs: list[Pair], number: int) -> float:
        """Seconds of what is left of a round; of what has not run yet, a guess."""
        todo = (one for one in pairs if not self._done(rows, one, number))
        took = (rows.find("verified", op=name, mpi=bench.mpi.name) for name, bench in todo)
        return sum(row["seconds"] if row else GUESS for row in took)

    def _verify(self, name: str, bench: Bench, rows: Rows) -> None:
        """Verify an operation once; measure it once to warm up and to know how long it takes."""
        if time.monotonic() > self.until:
            raise Over
        of: Row = {"mpi": bench.mpi.name, "op": name}
        if not rows.find("verified", **of) and not rows.find("failed", **of):
            try:
                took = bench.verify(name, self.ranks) or bench.measure(name, self.ranks)["seconds"]
                rows.add(kind="verified", seconds=took, **of)
            except Wrong as wrong:
                rows.add(kind="failed", why=str(wrong), **of)

    def _measure(self, name: str, bench: Bench, number: int, rows: Rows) -> None:
        if time.monotonic() > self.until:
            raise Over
        of: Row = {"mpi": bench.mpi.name, "op": name}
        try:
            rows.add(kind="value", round=number, **bench.measure(name, self.ranks), **of)
        except Wrong as wrong:  # it was right before: its earlier figures do not count either
            rows.add(kind="failed", round=number, why=f"in round {number}: {wrong}", **of)

    def _order(self, number: int) -> Iterator[Pair]:
        """Operation by operation, each round beginning with another MPI."""
        start = number % len(self.benches)
        for name in self.operations:
            yield from ((name, one) for one in (*self.benches[start:], *self.benches[:start]))

    def _done(self, rows: Rows, one: Pair, number: int) -> bool:
        of: Row = {"mpi": one[1].mpi.name, "op": one[0]}
        return bool(rows.find("value", round=number, **of) or rows.find("failed", **of))


def rounds_of(rows: list[Row], processors: int) -> list[Row]:
    """Each round with how many processors others used, and whether it was quiet: None if unseen."""
    found, values = [], [row for row in rows if row["kind"] == "value"]
    for number in sorted({row["round"] for row in values}):
        own = [x for x in values if x["round"] == number and x["others"] is not None]
        seconds = max(sum(row["seconds"] for row in own), 0.001)
        used = round(sum(row["others"] * row["seconds"] for row in own) / seconds, 3)
        others, quiet = (used, used <= QUIET[0] + QUIET[1] * processors) if own else (None, None)
        load = max((row["load"] for row in own), default=None)
        found.append({"round": number, "others": others, "load": load, "quiet": quiet})
    return found
