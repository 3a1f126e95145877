"""The report as one HTML file that needs nothing else: no network, no script, no font, no image."""

import re
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from mvstack.builders.base import builders
from mvstack.render.templates import jinja
from mvstack.report import plots as drawing
from mvstack.report import summary
from mvstack.report.records import Build, Case
from mvstack.report.series import Plot, Point
from mvstack.report.summary import Report
from mvstack.support.errors import InvalidInput, telling
from mvstack.support.files import write_atomically
from mvstack.support.units import NOTHING, count, duration, number, quantity, size, unit_name


def write_html(data: Report, path: Path) -> Path:
    """Write the page and give its path back; the same data give the same bytes.

    Written beside and renamed, so that a page is there whole or not at all. Raises
    :class:`InvalidInput` where ``path`` cannot be written.
    """
    todo = "name a file in a folder that you may write to: --html FILE"
    with telling(InvalidInput, "the report cannot be written", where=str(path), todo=todo):
        write_atomically(path, render(data), mode=None)
    return path


def render(data: Report) -> str:
    """The page as text."""
    environment = jinja(Path(__file__).parent, autoescape=True)
    filters = {"duration": duration, "size": size, "code": _code, "quantity": quantity}
    environment.filters.update(filters, moment=summary.moment, track=track)
    environment.globals.update(
        count=count, label=summary.label, scalars=summary.scalars, NOTHING=NOTHING
    )
    return environment.get_template("report.html.j2").render(_view(data))


def track(state: str, builder: str) -> list[tuple[str, bool]]:
    """The states on the way of this builder, each with whether it is reached."""
    by_solver = builder in (known := builders()) and known[builder].solves
    words = ["rendered", "concretized", "built", "run"]
    return [
        (word, index <= words.index(state))
        for index, word in enumerate(words)
        if word != "concretized" or by_solver
    ]


def _code(text: str) -> Markup:
    """``text`` for the page, with what stands between backticks as code."""
    if text.count("`") % 2:  # no telling what the odd one encloses
        return escape(text)
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))


def _view(data: Report) -> dict[str, Any]:
    """All that the template prints; it decides nothing but the layout."""
    return {
        "data": data,
        "key_figures": _key_figures(data),
        "plots": [_plot(plot) for plot in data.plots],
        "bars": _bars(data),
        "groups": list(summary.STEP_GROUPS),
        "matrix": _matrix(data),
        "columns": list(dict.fromkeys(case.mpi for case in data.cases)),
        "failures": [case for case in data.cases if case.result in ("fail", "missing")],
    }


def _key_figures(data: Report) -> list[tuple[str, str, str]]:
    """Number, unit and words for what the default MPI reaches in the first three plots."""
    default = data.mpi[0].module if data.mpi else ""
    found = []
    for plot in data.plots[:3]:
        line = next((line for line in plot.lines if line.label.startswith(default)), plot.lines[0])
        point = _telling(plot, [point for point in line.points if point.value is not None])
        if point is not None:
            who = f", {line.label}" if len(data.mpi) > 1 else ""
            what = f"{plot.title.lower()} at {size(point.size)}{who}"
            found.append((number(point.value), unit_name(plot.unit), what))
    return found


def _telling(plot: Plot, known: list[Point]) -> Point | None:
    """The best bandwidth; the latency of a small message."""
    if plot.higher_is_better:
        return max(known, key=lambda point: point.value or 0.0, default=None)
    return next((point for point in known if point.size >= 8), known[-1] if known else None)


def _matrix(data: Report) -> list[tuple[Case, dict[str, Case]]]:
    """The cases by check: one row each, with the case of every MPI build."""
    rows: dict[tuple[str, int | None], dict[str, Case]] = {}
    for case in data.cases:
        rows.setdefault((case.check, case.ranks), {})[case.mpi] = case
    return [(next(iter(cells.values())), cells) for cells in rows.values()]


def _bars(data: Report) -> list[tuple[Build, list[tuple[str, float, str]]]]:
    """Each build with its groups of steps: name, seconds, percentage of the longest build."""
    steps = [(build, summary.grouped_steps(build)) for build in data.builds if build.planned]
    longest = max((sum(seconds for _, seconds in groups) for _, groups in steps), default=0.0)
    return [
        (build, [(name, seconds, f"{100 * seconds / longest:.3f}") for name, seconds in groups])
        for build, groups in steps
        if groups
    ]


def _plot(plot: Plot) -> dict[str, Any]:
    heads, columns = _columns(plot)
    return {
        "plot": plot,
        "svg": drawing.svg(plot, _alternative(plot)) if drawing.drawable(plot) else "",
        "heads": heads,
        "rows": [(one, [column.get(one, NOTHING) for column in columns]) for one in plot.sizes],
    }


def _alternative(plot: Plot) -> str:
    """The plot in words, for who cannot see it."""
    parts = []
    for line in plot.lines:
        known = [
            f"{quantity(point.value, plot.unit)} at {size(point.size)}"
            for point in line.points
            if point.value is not None
        ]
        if known:
            parts.append(f"{line.label}: {known[0]} to {known[-1]}")
    return f"{plot.title} against message size, both axes logarithmic. " + "; ".join(parts)


def _columns(plot: Plot) -> tuple[list[str], list[dict[int, str]]]:
    """The data of a plot by size: up to three columns for each line, and their heads."""
    heads: list[str] = []
    columns: list[dict[int, str]] = []
    for line in plot.lines:
        heads.append(line.label)
        columns.append({p.size: quantity(p.value, plot.unit) for p in line.points})
        if line.has_band:
            heads.append(f"earlier runs ({line.earlier:,})")
            columns.append({p.size: _range(p, plot.unit) for p in line.points})
        if line.has_reference:
            heads.append("reference")
            columns.append({p.size: quantity(p.reference, plot.unit) for p in line.points})
    return heads, columns


def _range(point: Point, unit: str) -> str:
    if point.low is None or point.high is None:
        return NOTHING
    low, high = quantity(point.low, ""), quantity(point.high, unit)
    return high if point.low == point.high else f"{low} to {high}"
