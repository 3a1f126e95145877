"""What a comparison found: figures with their intervals, ratios to the best peer, words, a plot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mvstack.measure import omb, statistics
from mvstack.measure.bench import Row
from mvstack.measure.compare import rounds_of
from mvstack.measure.statistics import Array, Interval
from mvstack.render.templates import template
from mvstack.support.units import quantity, size, unit_name

TELLING = (0, 8, 1024, 16384, 65536, 1048576)  # the sizes in the table for people
FEWEST = 3  # quiet rounds that are enough to leave the others out


def found(rows: list[Row], ours: list[str], names: list[str], processors: int) -> dict[str, Any]:
    """All that the rows say: the rounds, and by operation the figures of every MPI.

    ``names`` are all MPIs, ``ours`` among them. Rounds that were not quiet are left out where at
    least three were.
    """
    rounds = rounds_of(rows, processors)
    quiet = [row["round"] for row in rounds if row["quiet"]]
    counted = quiet if len(quiet) >= FEWEST else [row["round"] for row in rounds]
    faults = {
        (row["op"], row["mpi"]): row["why"]
        for row in rows
        if row["kind"] in ("verified", "failed") and row["why"]
    }
    known = dict.fromkeys(row["op"] for row in rows if row["kind"] == "value")
    operations = [
        _operation(name, [row for row in rows if row["op"] == name], faults, (ours, names, counted))
        for name in known
    ]
    return {
        "rounds": [row | {"counted": row["round"] in counted} for row in rounds],
        "operations": operations,
        "faults": [{"op": op, "mpi": mpi, "why": why} for (op, mpi), why in faults.items()],
    }


def _operation(
    name: str,
    rows: list[Row],
    faults: dict[tuple[str, str], str],
    who: tuple[list[str], list[str], list[int]],
) -> dict[str, Any]:
    ours, names, counted = who
    operation = omb.OPERATIONS[name]
    values = [r for r in rows if r["kind"] == "value" and (name, r["mpi"]) not in faults]
    sizes = sorted({at for row in values for at, _ in row["values"]})
    drawn = {
        mpi: statistics.medians(array(values, mpi, counted, sizes))
        for mpi in names
        if any(row["mpi"] == mpi and row["round"] in counted for row in values)
    }
    peers = [mpi for mpi in drawn if mpi not in ours]
    ahead = {}
    for mpi in [one for one in ours if one in drawn] if peers else ():
        others = [drawn[one] for one in peers]
        ratio = statistics.ratios(drawn[mpi], others, operation.higher_is_better)
        best = max if operation.higher_is_better else min
        ahead[mpi] = {
            "mean": statistics.interval(statistics.geometric_mean(ratio)).as_dict(),
            "sizes": [
                {"size": at, "best": best(peers, key=lambda one: float(drawn[one][0][place]))}
                | statistics.interval(ratio[:, place]).as_dict()
                for place, at in enumerate(sizes)
            ],
        }
    return {
        "op": name,
        "unit": operation.unit,
        "higher_is_better": operation.higher_is_better,
        "figures": {
            mpi: [
                {"size": at} | statistics.interval(one[:, place]).as_dict()
                for place, at in enumerate(sizes)
            ]
            for mpi, one in drawn.items()
        },
        "ahead": ahead,
    }


def array(values: list[Row], mpi: str, rounds: list[int], sizes: list[int]) -> Array:
    """The values of ``mpi`` as rounds by sizes; nan for what was not measured."""
    made = np.full((len(rounds), len(sizes)), np.nan)
    for row in values:
        if row["mpi"] == mpi and row["round"] in rounds:
            for at, value in row["values"]:
                made[rounds.index(row["round"]), sizes.index(at)] = value
    return made


def tables(data: dict[str, Any], table: Callable[..., Any]) -> list[Any]:
    """What is printed: how far ours are ahead, the figures of some sizes, and what to know."""
    words = {"quantity": quantity, "size": size, "interval": lambda row: Interval(**row)}
    lines = template("cli/shown/compare", data=data, telling=TELLING, **words).splitlines()
    rows = [[word.strip() for word in line.split(" | ")] for line in lines if line.strip()]
    names = [one["name"] for one in data["mpis"]]
    ahead = [f"{one['name']} ahead" for one in data["mpis"] if one["ours"] and len(names) > 1]
    columns = {
        "mean": ["operation", "of ours", "times as good as the best peer", "which is"],
        "size": ["operation", "size", *names, *ahead],
    }
    of = {kind: [row[1:] for row in rows if row[0] == kind] for kind in (*columns, "note")}
    shown = [table(heads, of[kind]) for kind, heads in columns.items() if of[kind]]
    return [*shown, *(" ".join(row) for row in of["note"])]


def draw(data: dict[str, Any], file: Path) -> None:
    """A plot of every operation against message size, with intervals, as SVG or PNG."""
    # here: it costs more time than all of the command line
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sized = [
        one for one in data["operations"] if any(len(x) > 1 for x in one["figures"].values())
    ]
    if not sized:
        return
    lines = (len(sized) + 2) // 3
    figure = Figure(figsize=(15, 4 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    for number, one in enumerate(sized, start=1):
        axes = figure.add_subplot(lines, 3, number)
        for mpi, rows in one["figures"].items():
            at, value = [row["size"] for row in rows], [row["value"] for row in rows]
            bounds = [row["low"] for row in rows], [row["high"] for row in rows]
            axes.plot(at, value, marker=".", label=mpi, linewidth=2 if mpi in one["ahead"] else 1)
            axes.fill_between(at, *bounds, alpha=0.2)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        way = "higher" if one["higher_is_better"] else "lower"
        axes.set_title(f"{one['op']} ({unit_name(one['unit'])}, {way} is better)")
        axes.set_xlabel("bytes")
        axes.grid(True, alpha=0.4)
    figure.axes[0].legend(fontsize="small")
    figure.savefig(file)
