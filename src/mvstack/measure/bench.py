"""Run the benchmarks of one MPI: see first that every operation is right, then measure it."""

import contextlib
import os
import re
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from mvstack.measure import omb
from mvstack.measure.mpis import Mpi
from mvstack.support import hashes
from mvstack.support.processes import Done, run

LIMIT = 120.0  # seconds that one run of a benchmark may take; what takes longer hangs
Row = dict[str, Any]


class Wrong(Exception):
    """An operation gives wrong values, hangs or dies: it says which and how."""


@dataclass(frozen=True)
class Bench:
    """One MPI with its compiled programs, and the ``sizes`` in bytes that are measured."""

    mpi: Mpi
    folder: Path
    sizes: tuple[int, int]
    limit: float = LIMIT

    def run(
        self, program: str, ranks: int, *words: str, more: Mapping[str, str] | None = None
    ) -> Done:
        """Run a program of ``folder``; ``more`` is added to its environment. Raises Wrong."""
        command = self.mpi.command(ranks, self.folder / program, *words)
        try:
            done = run(command, env={**self.mpi.environment, **(more or {})}, limit=self.limit)
        except OSError as error:
            raise Wrong(f"{command[0]} cannot be started: {error.strerror}") from None
        if done.timed_out:
            raise Wrong(f"it did not end within {self.limit:g} s: it hangs")
        if not done.ok:
            last = [line.strip() for line in done.said.splitlines() if line.strip()][-3:]
            raise Wrong(f"it ended with status {done.status}: {' | '.join(last) or 'no word'}")
        return done

    def verify(self, name: str, ranks: int, more: Mapping[str, str] | None = None) -> None:
        """See that an operation brings the right values. Raises Wrong."""
        operation = omb.OPERATIONS[name]
        on = operation.on(ranks)
        if not operation.checked:
            said = self.run("verify", on, more=more).text
            if f"world {on}\n" not in said:
                raise Wrong(f"its world is not of {on} ranks: the launcher does not fit the MPI")
            if f"{name} wrong" in said:
                raise Wrong("its results are wrong")
        self._figures(name, ranks, True, more)

    def measure(self, name: str, ranks: int, more: Mapping[str, str] | None = None) -> Row:
        """The figures of an operation by size, and what else went on. Raises Wrong."""
        with watched() as seen:
            values = self._figures(name, ranks, False, more)
        return {"values": values, **seen}

    def _figures(
        self, name: str, ranks: int, check: bool, more: Mapping[str, str] | None
    ) -> dict[int, float]:
        operation = omb.OPERATIONS[name]
        words = omb.arguments(operation, self.sizes, check)
        done = self.run(operation.program, operation.on(ranks), *words, more=more)
        try:
            return omb.read(done.text, operation)
        except ValueError as error:
            raise Wrong(str(error)) from None

    def version(self) -> str:
        """What its MPI_Get_library_version says, the first line. Raises Wrong."""
        found = re.search(r"^version (.*)", self.run("verify", 2).text, re.M)
        return " ".join(found[1].split()) if found else ""


@contextlib.contextmanager
def watched() -> Iterator[Row]:
    """What the machine did beside us while the block ran.

    ``others`` is the processor time of all that we did not start, and what the host of a virtual
    machine took away, in processors; ``load`` the load average before; ``seconds`` how long.
    """
    seen: Row = {"load": round(os.getloadavg()[0], 2)}
    begin, busy, own = time.monotonic(), _busy(), _own()
    yield seen
    seconds = max(time.monotonic() - begin, 0.01)
    others = max((_busy() - busy) - (_own() - own), 0.0) / seconds
    seen |= {"seconds": round(seconds, 3), "others": round(others, 3)}


def _busy() -> float:
    times = psutil.cpu_times()._asdict()
    return float(sum(times.get(one, 0) for one in ("user", "nice", "system", "steal", "softirq")))


def _own() -> float:
    spent = [resource.getrusage(one) for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def prepared(mpi: Mpi, source: Path, cache: Path, sizes: tuple[int, int]) -> Bench:
    """The benchmarks of ``mpi``, compiled once for each build of it. Raises BuildFailed."""
    key = hashes.of(mpi.identity, mpi.cc, str(source), omb.version_of(source))[:16]
    folder = cache / "benchmarks" / key
    omb.programs(source, folder, mpi.cc, mpi.environment)
    return Bench(mpi, folder, sizes)
