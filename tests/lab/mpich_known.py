"""Results of MPICH's tests, and the failures that are known: read, compared, recorded."""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
KNOWN = HERE / "mpich-suite-known.yaml"
FAULT_OF = ("mpich", "mvapich", "suite", "machine")
BAD = ("failed", "timed out", "not built")


class Wrong(Exception):
    """The call, the source or the file of known failures is wrong."""


@dataclass
class Result:
    """What became of one test. ``first``: the state before it was run again."""

    test: str
    state: str  # passed, skipped, or one of BAD
    ranks: int
    seconds: float = 0.0
    said: str = ""
    first: str = ""
    load: float = 0.0  # of the machine when it began


@dataclass
class Known:
    """A row of mpich-suite-known.yaml."""

    test: str
    mpi: list[str]
    whose: str
    reason: str
    where: str  # file:line
    sometimes: bool = False
    met: list[str] = field(default_factory=list)

    def is_for(self, mpi: str) -> bool:
        return any(fnmatchcase(mpi, one) for one in self.mpi)


@dataclass
class Verdict:
    """A run beside what is known: explained failures with their rows, new ones, stale rows."""

    explained: list[tuple[Result, Known]] = field(default_factory=list)
    new: list[Result] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)


def read_known(path: Path) -> list[Known]:
    """The rows. Raises Wrong with file and line."""
    rows = []
    for row in YAML().load(path.read_text()) or []:
        where = f"{path.name}:{row.lc.line + 1}"
        given = set(row)
        needed = {"test", "mpi", "whose", "reason"}
        if not needed <= given <= needed | {"sometimes"} or row["whose"] not in FAULT_OF:
            raise Wrong(
                f"{where}: a row has test, mpi, whose ({', '.join(FAULT_OF)}) and reason, and "
                f"may have sometimes; found {', '.join(f'{k}: {row[k]}' for k in row)}"
            )
        mpi = [row["mpi"]] if isinstance(row["mpi"], str) else list(row["mpi"])
        rows.append(Known(**{**row, "mpi": mpi}, where=where))
    return rows


def compared(results: list[Result], known: list[Known], mpi: str, folders: list[str]) -> Verdict:
    """A run beside the rows for its MPI. A row is stale when its test passes or is not there."""
    found = Verdict()
    rows = [row for row in known if row.is_for(mpi)]
    for row in rows:
        row.met = []
    for one in results:
        mine = [row for row in rows if fnmatchcase(one.test, row.test)]
        if one.state in BAD and mine:
            found.explained.append((one, mine[0]))
        elif one.state in BAD:
            found.new.append(one)
        for row in mine:
            row.met.append(one.test)
            if one.state == "passed" and not row.sometimes:
                found.stale.append(f"{row.where}: {one.test} passes: drop or narrow the row")
    for row in rows:
        if not row.met and row.test.split("/")[0] in folders:
            found.stale.append(f"{row.where}: no test is called {row.test}")
    return found


def read_results(path: Path) -> dict[str, Result]:
    """The last result of each test."""
    lines = path.read_text().splitlines() if path.is_file() else []
    found = {}
    for line in lines:
        with suppress(ValueError, TypeError):  # the last line of a run that was broken off
            one = Result(**json.loads(line))
            found[one.test] = one
    return found


def keep(path: Path, result: Result) -> None:
    """Adds a result to the file."""
    with path.open("a") as out:
        out.write(json.dumps(asdict(result)) + "\n")


def record_of(results: list[Result], verdict: Verdict) -> dict[str, Any]:
    """The counts of a run, and each known failure with its reason."""
    states = Counter(one.state for one in results)
    cores = len(os.sched_getaffinity(0))
    return {
        "date": datetime.date.today().isoformat(),
        "cores": cores,
        "tests": len(results),
        **{state.replace(" ", "_"): states[state] for state in ("passed", "skipped", *BAD)},
        "passed_again": sum(one.state == "passed" and one.first in BAD for one in results),
        "oversubscribed": sum(one.ranks > cores and one.state != "skipped" for one in results),
        "skips": Counter(one.said for one in results if one.state == "skipped"),
        "known": {one.test: one.state for one, _ in verdict.explained},
        "new": {one.test: one.state for one in verdict.new},
    }


def put_record(path: Path, line: dict[str, Any]) -> None:
    """Puts a run in the record, in place of the last one of the same MPI."""
    had = path.read_text().splitlines() if path.is_file() else []
    lines = [one for one in had if json.loads(one)["mpi"] != line["mpi"]]
    path.write_text("\n".join(sorted([*lines, json.dumps(line)])) + "\n")
