"""The report as one HTML file that needs nothing else: no network, no script, no font, no image."""

import re
from pathlib import Path

from markupsafe import Markup, escape

from mvstack.builders.base import builders
from mvstack.render.templates import jinja
from mvstack.report import plots as drawing
from mvstack.report import summary
from mvstack.report.records import Case
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
    words = {"count": count, "label": summary.label, "scalars": summary.scalars}
    environment.globals.update(words, NOTHING=NOTHING, svg=drawing.svg, drawable=drawing.drawable)
    builds = [build for build in data.builds if build.planned]
    given = {
        "key_figures": _key_figures(data),
        "bars": [(one, steps) for one in builds if (steps := summary.grouped_steps(one))],
        "groups": list(summary.STEP_GROUPS),
        "matrix": _matrix(data),
    }
    return environment.get_template("report.html.j2").render(data=data, **given)


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
