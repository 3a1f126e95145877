"""From figures to plots: each figure against message size, a line for each MPI build.

The values are those of the newest run that counts; all other runs give the range that is drawn as a
band behind them.
"""

import re
from collections import Counter
from collections.abc import Iterable

from mvstack.report.records import Case, Figure, Record, Run
from mvstack.support.units import unit_name

_RATE = re.compile(r"/\s*s(ec)?$|flop|^[GMKT]?i?B/s", re.IGNORECASE)
_BANDWIDTH = re.compile(r"bandwidth|(^|[_\W])(bi)?bw|mbytes|[KMGT]i?B/s", re.IGNORECASE)
_COLLECTIVES = ("allreduce", "alltoall", "allgather", "bcast", "reduce", "barrier")
_ORDER = ("latency", "bandwidth", "allreduce")
_IN_WORDS = ("Tuned ", "OsuBenchmarks ", "ImbBenchmarks")  # by few sizes, over time
# At least this many sizes make a curve; fewer are told in words beside the check.
_LEAST = 2
_Key = tuple[str, str, str]


class Point(Record):
    """One size of one line: the value, its reference, and the range of the earlier runs."""

    size: int
    value: float | None
    reference: float | None
    low: float | None
    high: float | None


class Line(Record):
    """An MPI build in a plot. ``earlier`` is how many earlier runs the range is taken from."""

    label: str
    benchmark: str
    points: tuple[Point, ...]
    earlier: int
    run: str

    @property
    def has_band(self) -> bool:
        """Whether there is a range of earlier runs."""
        return any(point.low is not None for point in self.points)

    @property
    def has_reference(self) -> bool:
        """Whether there is something to hold it against."""
        return any(point.reference is not None for point in self.points)


class Plot(Record):
    """One figure against message size, a line for each MPI build."""

    key: str
    title: str
    check: str
    name: str
    unit: str
    higher_is_better: bool
    lines: tuple[Line, ...]

    @property
    def sizes(self) -> list[int]:
        """The message sizes of all lines."""
        return sorted({point.size for line in self.lines for point in line.points})

    @property
    def benchmarks(self) -> list[str]:
        """What measured the lines."""
        return list(dict.fromkeys(line.benchmark for line in self.lines if line.benchmark))

    @property
    def axis(self) -> str:
        """What the values are and which way is good: ``µs, lower is better``."""
        way = "higher is better" if self.higher_is_better else "lower is better"
        return f"{unit_name(self.unit)}, {way}" if self.unit else way


def higher_is_better(unit: str) -> bool:
    """Whether more of this unit is good: rates are, times are not."""
    return bool(_RATE.search(unit))


def kind_of(check: str, name: str, unit: str) -> str:
    """latency, bandwidth or allreduce when the names say so, otherwise the figure's own name."""
    said = f"{check} {name}".lower()
    if collective := next((one for one in _COLLECTIVES if one in said), ""):
        return collective
    if _BANDWIDTH.search(f"{name} {unit}"):
        return "bandwidth"
    return "latency" if "latency" in said or "pingpong" in said else name


def sized(case: Case) -> bool:
    """Whether the case has a curve, so that its figures are shown as a plot and not in words."""
    return len({figure.size for figure in case.figures if figure.size is not None}) >= _LEAST


def since(run: Run, runs: list[Run]) -> str:
    """Which run a result is from; "" for the latest."""
    return "" if run is runs[-1] else (run.started or run.file)


def plots_of(counting: Iterable[tuple[Run, Case]], runs: list[Run]) -> tuple[Plot, ...]:
    """The plots of the results that count (newest first): latency, bandwidth, allreduce, others."""
    chosen: dict[_Key, dict[tuple[str, int], tuple[Run, Case]]] = {}
    for run, case in counting:
        drawn = sized(case) and case.result != "skip" and not case.check.startswith(_IN_WORDS)
        for figure in case.figures if drawn else ():
            lines = chosen.setdefault((case.check, figure.name, figure.unit), {})
            lines.setdefault((case.mpi, case.ranks or 0), (run, case))
    found = [
        (kind_of(*key), key, lines_)
        for key, results in chosen.items()
        if (lines_ := _lines(key, results, runs))
    ]
    order = {kind: place for place, kind in enumerate(_ORDER)}
    found.sort(key=lambda row: (order.get(row[0], len(order)), row[:2]))
    kinds = Counter(kind for kind, _, _ in found)
    return tuple(
        Plot(
            key=f"plot{count}",
            title=(kind[:1].upper() + kind[1:] or "Figure")
            + (f": {check} {name}".rstrip() if kinds[kind] > 1 else ""),
            check=check,
            name=name,
            unit=unit,
            higher_is_better=higher_is_better(unit),
            lines=lines,
        )
        for count, (kind, (check, name, unit), lines) in enumerate(found, start=1)
    )


def _lines(
    key: _Key, results: dict[tuple[str, int], tuple[Run, Case]], runs: list[Run]
) -> tuple[Line, ...]:
    many_ranks = len({ranks for _, ranks in results}) > 1
    lines = []
    for (mpi, ranks), (run, case) in sorted(results.items(), key=lambda item: item[0]):
        earlier = [known for one in runs if one is not run for known in _alike(key, case, one)]
        points = []
        for size, figure in sorted(_by_size(key, case).items()):
            known = [values[size] for values in earlier if size in values]
            low, high = min(known, default=None), max(known, default=None)
            held = {"value": figure.value, "reference": figure.reference}
            points.append(Point(size=size, low=low, high=high, **held))
        if len(points) >= _LEAST:
            line = Line(
                label=f"{mpi}, {ranks} ranks" if many_ranks and ranks else mpi,
                benchmark=case.benchmark,
                points=tuple(points),
                earlier=len(earlier),
                run=since(run, runs),
            )
            lines.append(line)
    return tuple(lines)


def _by_size(key: _Key, case: Case) -> dict[int, Figure]:
    return {
        figure.size: figure
        for figure in case.figures
        if (case.check, figure.name, figure.unit) == key and figure.size is not None
    }


def _alike(key: _Key, case: Case, run: Run) -> list[dict[int, float]]:
    """The same figures of another run by size; another benchmark's are not the same."""
    found = [
        {size: one.value for size, one in _by_size(key, old).items() if one.value is not None}
        for old in run.cases
        if (old.mpi, old.ranks, old.benchmark) == (case.mpi, case.ranks, case.benchmark)
    ]
    return [values for values in found if values]
