"""How long a node takes to build: recorded figures of its package, else estimates. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cache

from mvstack.ci.graph import Node
from mvstack.model.build_times import Assumed, Recorded, build_times


@dataclass(frozen=True)
class Cost:
    """Seconds that no core shortens, and core seconds that all cores share."""

    serial: float
    parallel: float
    version: str | None = None
    over: str = ""

    def on(self, cores: int) -> float:
        """Seconds on that many cores. Raises ValueError for fewer than one."""
        if cores < 1:
            raise ValueError(f"a build needs a core, and has {cores}")
        return self.serial + self.parallel / cores


def seconds(node: Node, cores: int) -> float:
    """Seconds that building ``node`` from nothing takes on ``cores`` cores.

    Names are compared without regard to case. Recorded builds count before estimates, those of the
    very version before others, and those over a package that the node needs before others; of
    several the upper median is taken.
    """
    return statistics.median_high([cost.on(cores) for cost in costs(node)])


def costs(node: Node) -> list[Cost]:
    """The rows of the table that tell most about ``node``; the default when none does."""
    rows = _recorded().get(node.name.lower(), [])
    found = _nearest(node, rows) or _nearest(node, _estimated().get(node.name.lower(), []))
    default = build_times().default
    return found or [Cost(default.serial_seconds, default.parallel_core_seconds)]


def _nearest(node: Node, rows: list[Cost]) -> list[Cost]:
    below = {need.lower().partition("-")[0] for need in node.needs}  # keys: GCCcore-12.2.0.eb
    fit = [row for row in rows if row.over in below] or [row for row in rows if not row.over]
    return [row for row in fit if row.version == node.version] or fit


@cache
def _recorded() -> dict[str, list[Cost]]:
    times = build_times()
    table: dict[str, list[Cost]] = {}
    for row in times.recorded:
        for name in row.names:
            table.setdefault(name, []).append(_split(row, times.assumed))
    return table


def _split(row: Recorded, assumed: Assumed) -> Cost:
    serial = row.serial_seconds
    if serial is None:
        serial = row.seconds * assumed.serial_share
    parallel = (row.seconds - serial) * row.cores
    return Cost(serial, parallel, row.version, (row.over or "").lower())


@cache
def _estimated() -> dict[str, list[Cost]]:
    table: dict[str, list[Cost]] = {}
    for row in build_times().estimates:
        cost = Cost(
            row.serial_seconds, row.parallel_core_seconds, row.version, (row.over or "").lower()
        )
        for name in row.names:
            table.setdefault(name, []).append(cost)
    return table
