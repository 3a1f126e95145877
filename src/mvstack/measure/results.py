"""What a comparison found: figures with their intervals, ratios to the best peer, table, plot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvstack.measure import statistics
from mvstack.measure.bench import MOVED, OPERATIONS
from mvstack.measure.compare import Row, rounds_of
from mvstack.measure.statistics import Array, Interval
from mvstack.render.templates import template
from mvstack.support.units import number, size, unit_name
from mvstack.test.history import LESS_IS_BETTER

TELLING = (0, 8, 1024, 16384, 65536, 1048576)  # the sizes in the table for people
FEWEST = 3  # quiet rounds that are enough to leave the others out


def found(rows: list[Row], mpis: dict[str, bool], processors: int) -> dict[str, Any]:
    """What the rows say: the rounds, what failed, and by operation the figures of every MPI.

    ``mpis`` says which are ours. Rounds that were not quiet are left out where three were.
    """
    rounds = rounds_of(rows, processors)
    quiet = [row["round"] for row in rounds if row["quiet"] is not False]
    counted = quiet if len(quiet) >= FEWEST else [row["round"] for row in rounds]
    failed = {(row["op"], row["mpi"]): row for row in rows if row["kind"] == "failed"}
    right = [row for row in rows if row["kind"] == "value" and row["round"] in counted]
    right = [row for row in right if (row["op"], row["mpi"]) not in failed]
    right, moved = steady(right), len(right) - len(steady(right))
    there = {row["op"] for row in right}
    names = [name for name in dict.fromkeys((*OPERATIONS, *sorted(there))) if name in there]
    return {
        "moved": moved,
        "rounds": [row | {"counted": row["round"] in counted} for row in rounds],
        "operations": [
            _operation(name, [row for row in right if row["op"] == name], mpis, counted)
            for name in names
        ],
        "faults": [{name: row[name] for name in ("op", "mpi", "why")} for row in failed.values()],
    }


def steady(rows: list[Row]) -> list[Row]:
    """Those that ran while the cores were as far apart as in most; the others' speed is another.

    Of an operation of which an MPI would have none all count, and so does a hop of 0: unknown.
    """
    hops = np.array([row.get("hop", 0.0) for row in rows], dtype=float)
    middle = np.median(hops[hops > 0]) if (hops > 0).any() else 0.0
    low, high = middle / MOVED, middle * MOVED
    kept = [hop == 0 or low <= hop <= high for hop in hops]
    pairs = [(row["op"], row["mpi"]) for row in rows]
    lost = {op for op, _ in {*pairs} - {pair for pair, one in zip(pairs, kept, strict=True) if one}}
    return [row for row, one in zip(rows, kept, strict=True) if one or row["op"] in lost]


def _operation(name: str, rows: list[Row], mpis: dict[str, bool], counted: list[int]) -> Row:
    unit = OPERATIONS[name].unit if name in OPERATIONS else ""
    sizes = sorted({at for row in rows for at, _ in row["values"]})
    higher = [more_is_better(name, at) for at in sizes]
    by_mpi = {mpi: [row for row in rows if row["mpi"] == mpi] for mpi in mpis}
    drawn = {
        mpi: statistics.medians(array(own, counted, sizes)) for mpi, own in by_mpi.items() if own
    }
    peers = {mpi: one for mpi, one in drawn.items() if not mpis[mpi]}
    ahead = {}
    for mpi in [mpi for mpi in drawn if mpis[mpi]] if peers else ():
        ratio = statistics.ratios(drawn[mpi], [*peers.values()], higher)
        if np.isfinite(ratio[0]).any():  # at a size that both have
            mean = statistics.interval(statistics.geometric_mean(ratio)).as_dict()
            ahead[mpi] = {"mean": mean, "sizes": _intervals(ratio, sizes)}
    figures = {mpi: _intervals(one, sizes) for mpi, one in drawn.items()}
    same = len({*higher}) == 1  # figures of an application differ; each has its unit in its name
    row = {"op": name, "unit": unit, "higher_is_better": higher[0] if same else None}
    return row | {"figures": figures, "ahead": ahead}


def drawn_ratios(rows: list[Row], name: str, mpi: str, other: str) -> Array:
    """How many times as good ``mpi`` is as ``other``, by resample and size of one operation."""
    own = [x for x in steady([x for x in rows if x["kind"] == "value"]) if x["op"] == name]
    rounds, sizes = {row["round"] for row in own}, {at for row in own for at, _ in row["values"]}
    one, two = (
        statistics.medians(array([r for r in own if r["mpi"] == x], sorted(rounds), sorted(sizes)))
        for x in (mpi, other)
    )
    return statistics.ratios(one, [two], [more_is_better(name, at) for at in sorted(sizes)])


def more_is_better(name: str, at: int | str) -> bool:
    """Whether it is of an operation at a size, or of an application's figure ``NAME in UNIT``."""
    known = OPERATIONS.get(name)
    return known.higher_is_better if known else str(at).rpartition(" in ")[2] not in LESS_IS_BETTER


def _intervals(drawn: Array, sizes: list[int]) -> list[Row]:
    return [
        {"size": at, **statistics.interval(drawn[:, place]).as_dict()}
        for place, at in enumerate(sizes)
        if np.isfinite(drawn[0, place])
    ]


def array(rows: list[Row], rounds: list[int], sizes: list[int]) -> Array:
    """The values of one MPI as rounds by sizes; nan for what was not measured."""
    made = np.full((len(rounds), len(sizes)), np.nan)
    for row in (row for row in rows if row["round"] in rounds):
        for at, value in row["values"]:
            made[rounds.index(row["round"]), sizes.index(at)] = value
    return made


def tables(data: dict[str, Any], table: Callable[..., Any]) -> list[Any]:
    """What is printed: how far ours are ahead, the figures of some sizes, and what to know."""
    words = {
        "number": number,
        "unit": unit_name,
        "size": lambda at: at if isinstance(at, str) else size(at),
        "interval": lambda row: Interval(**row),
    }
    lines = template("cli/shown/compare", data=data, telling=TELLING, **words).splitlines()
    rows = [[word.strip() for word in line.split(" | ")] for line in lines if line.strip()]
    peers = not all(one["ours"] for one in data["mpis"])
    heads = ["operation", "size"]
    for one in data["mpis"]:
        heads += [f"{one['name']} ±%", *(["×\nbest"] if one["ours"] and peers else [])]
    columns = {"mean": ["operation", "of ours", "times as good as the best peer"], "size": heads}
    of = {kind: [row[1:] for row in rows if row[0] == kind] for kind in (*columns, "note")}
    shown = {kind: table(heads, of[kind]) for kind, heads in columns.items() if of[kind]}
    for place, column in enumerate(shown["size"].columns if "size" in shown else ()):
        column.justify, column.no_wrap = "right" if place else "left", not place
    return [*shown.values(), *(" ".join(row) for row in of["note"])]


def draw(data: dict[str, Any], file: Path) -> None:
    """A plot of each operation against message size, with intervals."""
    # here: it costs more time than all of the command line
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    known = [name for name, one in OPERATIONS.items() if one.least]
    sized = [one for one in data["operations"] if one["op"] in known]
    lines = -(-len(sized) // 3)
    figure = Figure(figsize=(15, 4 * max(lines, 1)), layout="constrained")
    FigureCanvasSVG(figure)
    for place, one in enumerate(sized, start=1):
        way = "higher" if one["higher_is_better"] else "lower"
        title = f"{one['op']} ({unit_name(one['unit'])}, {way} is better)"
        axes = figure.add_subplot(lines, 3, place, title=title, xlabel="bytes")
        for mpi, rows in one["figures"].items():
            at, value, low, high = zip(*(row.values() for row in rows), strict=True)
            label = mpi if len(mpi) < 40 else f"{mpi[:16]}…{mpi[-20:]}"  # a prefix is long
            axes.plot(at, value, marker=".", label=label, linewidth=1 + (mpi in one["ahead"]))
            axes.fill_between(at, low, high, alpha=0.2)
        axes.set(xscale="log", yscale="log")
        axes.grid(True, alpha=0.4)
        axes.legend(fontsize="small")
    figure.savefig(file)
