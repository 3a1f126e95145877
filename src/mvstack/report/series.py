"""From figures to plots: each figure against message size, a line for each MPI build.

The values are those of the newest run that counts (see :mod:`mvstack.report.ran`); all other runs
give the range that is drawn as a band behind them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from mvstack.report.data import Case, Figure, Line, Plot, Point, Run
from mvstack.report.ran import counts_now

_RATE = re.compile(r"/\s*s(ec)?$|flop|^[GMKT]?i?B/s", re.IGNORECASE)
_BANDWIDTH = re.compile(r"bandwidth|(^|[_\W])(bi)?bw|mbytes|[KMGT]i?B/s", re.IGNORECASE)
_ORDER = ("latency", "bandwidth", "allreduce")
# At least this many sizes make a curve; fewer are told in words beside the check.
_LEAST = 2
_Key = tuple[str, str, str]
_Values = dict[int, list[float]]


def higher_is_better(unit: str) -> bool:
    """Whether more of this unit is good: rates are, times are not."""
    return bool(_RATE.search(unit))


def kind_of(check: str, name: str, unit: str) -> str:
    """latency, bandwidth or allreduce when the names say so, otherwise the figure's own name."""
    said = f"{check} {name}".lower()
    for collective in ("allreduce", "alltoall", "allgather", "bcast", "reduce", "barrier"):
        if collective in said:
            return collective
    if _BANDWIDTH.search(f"{name} {unit}"):
        return "bandwidth"
    return "latency" if "latency" in said or "pingpong" in said else name


def sized(case: Case) -> bool:
    """Whether the case has a curve, so that its figures are shown as a plot and not in words."""
    return len({figure.size for figure in case.figures if figure.size is not None}) >= _LEAST


def plots_of(
    runs: tuple[Run, ...],
    labels: list[str],
    built: Mapping[str, datetime],
    contents: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Plot, ...]:
    """The plots, in the order latency, bandwidth, allreduce, then all others by name."""
    lines: dict[_Key, dict[tuple[str, int | None], tuple[Run, Case]]] = {}
    for run in reversed(runs):
        for case in run.cases:
            counts = counts_now(case, run, labels, built, contents)
            if sized(case) and case.result != "skip" and counts:
                for key in dict.fromkeys(_key(case, figure) for figure in case.figures):
                    lines.setdefault(key, {}).setdefault((case.mpi, case.ranks), (run, case))
    plots = [_plot(key, chosen, runs) for key, chosen in lines.items()]
    return _titled([plot for plot in plots if plot.lines])


def _key(case: Case, figure: Figure) -> _Key:
    return (case.check, figure.name, figure.unit)


def _plot(
    key: _Key, chosen: dict[tuple[str, int | None], tuple[Run, Case]], runs: tuple[Run, ...]
) -> Plot:
    check, name, unit = key
    many_ranks = len({ranks for _, ranks in chosen}) > 1
    lines = []
    for (mpi, ranks), (run, case) in sorted(chosen.items(), key=lambda item: _sort(item[0])):
        label = f"{mpi}, {ranks} ranks" if many_ranks and ranks is not None else mpi
        points, count = _points(key, case, [other for other in runs if other is not run])
        if len(points) >= _LEAST:
            old = "" if run is runs[-1] else (run.started or run.file)
            lines.append(Line(label, case.benchmark, points, count, old))
    title = kind_of(check, name, unit)
    return Plot("", title, check, name, unit, higher_is_better(unit), tuple(lines))


def _sort(who: tuple[str, int | None]) -> tuple[str, int]:
    return (who[0], who[1] or 0)


def _points(key: _Key, case: Case, others: list[Run]) -> tuple[tuple[Point, ...], int]:
    """The points of one line by size, and how many other runs have the same line."""
    earlier: _Values = {}
    count = 0
    for run in others:
        for old in run.cases:
            if _comparable(old, case) and _collect(key, old, earlier):
                count += 1
    points = {}
    for figure in case.figures:
        if _key(case, figure) == key and figure.size is not None:
            seen = earlier.get(figure.size)
            low, high = (min(seen), max(seen)) if seen else (None, None)
            points[figure.size] = Point(figure.size, figure.value, figure.reference, low, high)
    return tuple(points[size] for size in sorted(points)), count


def _comparable(old: Case, case: Case) -> bool:
    """Whether both measured the same with the same: another benchmark's figures are others."""
    return (old.mpi, old.ranks, old.benchmark) == (case.mpi, case.ranks, case.benchmark)


def _collect(key: _Key, case: Case, into: _Values) -> bool:
    found = False
    for figure in case.figures:
        if _key(case, figure) == key and figure.size is not None and figure.value is not None:
            into.setdefault(figure.size, []).append(figure.value)
            found = True
    return found


def _titled(plots: list[Plot]) -> tuple[Plot, ...]:
    """Sorted, with a title that is unique on the page and a key fit for an element's id."""
    plots.sort(key=lambda plot: (_rank(plot.title), plot.title, plot.check, plot.name, plot.unit))
    titles = [plot.title for plot in plots]
    named = []
    for count, plot in enumerate(plots, start=1):
        title = plot.title[:1].upper() + plot.title[1:] or "Figure"
        if titles.count(plot.title) > 1:
            title = f"{title}: {plot.check} {plot.name}".strip()
        fields = {**plot.__dict__, "key": f"plot{count}", "title": title}
        named.append(Plot(**fields))
    return tuple(named)


def _rank(title: str) -> int:
    return _ORDER.index(title) if title in _ORDER else len(_ORDER)
