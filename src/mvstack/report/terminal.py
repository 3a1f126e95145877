"""The report for a terminal: tables that fit 80 columns, with and without colour, piped or not.

All text of the records goes in as :class:`rich.text.Text`: a name like ``[red]`` is a name, no
markup.
"""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from mvstack.render.templates import template
from mvstack.report import summary
from mvstack.report.records import Build
from mvstack.report.summary import Report
from mvstack.support.units import NOTHING, duration, number, one_line, quantity, size

_WIDTH = 80
_RESULTS = {
    "pass": ("passed", "green"),
    "fail": ("failed", "bold red"),
    "missing": ("missing", "bold red"),
    "skip": ("skipped", "yellow"),
}
_STATES = {"failed": "red", "rendered": "yellow"}  # the others are green
# Sizes that tell a curve in one row: a small message, the eager and the rendezvous range.
_TELLING = (8, 1024, 16384, 65536, 1048576)


def print_report(data: Report, console: Console, page: Path | None = None) -> None:
    """Print the report; ``page`` is the HTML file, named at the end with how to load the tree."""
    paper = _Paper(console)
    paper.fallback(data)
    tables = {"builds": _builds, "cases": _cases, "figures": _figures}
    said = template(
        "report/terminal.txt",
        data=data,
        **{"scalars": summary.scalars, "quantity": quantity, "size": size},
        # two MPI builds of one tarball name it once
        sources=list(dict.fromkeys(one for build in data.builds for one in build.sources)),
        older=sorted({summary.moment(case.run) for case in data.cases if case.run}),
        skipped=[(one.what, one.why) for one in data.skipped],
        told=[(one.what, one.why) for one in data.told],
    )
    for line in said.splitlines():
        style, indent, text = line.split("|", 2)
        if style == "#":
            paper.heading(text)
        elif style == "=":
            tables[text](paper, data)
        else:
            paper.text(text, style, indent=int(indent))
    paper.text("")
    if page is not None:
        # Never wrapped: a path and a command are copied from here.
        paper.command("report", str(page))
    if data.loadable:
        paper.command("load it", data.setup)
        paper.command("", data.module_load)
    else:
        paper.command("load it", "there is nothing to load: no MPI build is recorded as built")
    paper.fallback(data)


class _Paper:
    """A console as wide as a terminal has to be at least, and no wider than a line reads well."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.width = min(console.width, _WIDTH + 20) if console.is_terminal else _WIDTH

    def text(self, text: str, style: str = "", indent: int = 0) -> None:
        body = Text(self.fit(text), style=style)
        for line in body.wrap(self.console, self.width - indent) or [body]:
            # Unlike Padding this leaves no blanks at the end of a line in a pipe.
            line.rstrip()
            self.unbroken(Text(" " * indent) + line)

    def unbroken(self, line: Text) -> None:
        """One line, however long: it is searched for or copied."""
        self.console.print(line, soft_wrap=True, highlight=False)

    def fit(self, text: str) -> str:
        """``text`` in one line, with ? for what the terminal's encoding does not have."""
        encoding = self.console.encoding
        return one_line(text).encode(encoding, "replace").decode(encoding)

    def fallback(self, data: Report) -> None:
        if data.fallback:
            self.unbroken(Text(self.fit(data.fallback), style="bold yellow"))

    def heading(self, text: str) -> None:
        self.console.print()
        self.text(text, "bold")

    def command(self, label: str, text: str) -> None:
        self.unbroken(Text.assemble((f"{label:<9}", "dim"), self.fit(text)))

    def table(self, heads: list[str], rows: list[list[Text | str]], right: set[int]) -> None:
        """A table of texts; those of the columns ``right`` end at its right side."""
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
        for index, head in enumerate(heads):
            justify: JustifyMethod = "right" if index in right else "left"
            table.add_column(Text(self.fit(head)), justify=justify, overflow="fold")
        for row in rows:
            table.add_row(*(Text(self.fit(str(cell)), getattr(cell, "style", "")) for cell in row))
        self.console.print(table, width=self.width, highlight=False)


def _builds(paper: _Paper, data: Report) -> None:
    rows: list[list[Text | str]] = []
    for build in data.builds:
        colour = _STATES.get("failed" if build.result == "failed" else build.state, "green")
        state = Text(build.state, colour)
        time, steps = duration(build.seconds), Text(_steps(build), "dim")
        rows.append([summary.label(build), state, time, steps])
    if rows:
        paper.table(["package", "state", "time", "most of it"], rows, right={2})


def _steps(build: Build) -> str:
    """The two groups of steps that took longest."""
    steps = sorted(summary.grouped_steps(build), key=lambda step: -step[1])[:2]
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in steps)


def _cases(paper: _Paper, data: Report) -> None:
    rows: list[list[Text | str]] = []
    for case in data.cases:
        ranks = NOTHING if case.ranks is None else str(case.ranks)
        result, time = Text(*_RESULTS[case.result]), duration(case.seconds)
        rows.append([case.check, case.mpi, ranks, result, time])
    if rows:
        paper.table(["check", "MPI build", "ranks", "result", "time"], rows, right={2, 4})


def _figures(paper: _Paper, data: Report) -> None:
    if not data.plots:
        return
    paper.heading("How fast it is")
    for plot in data.plots:
        telling = [one for one in _TELLING if one in plot.sizes]
        sizes = telling or plot.sizes[:: max(1, len(plot.sizes) // 5)][:5]
        paper.text(", ".join([f"{plot.title}: {plot.axis}", *plot.benchmarks]), indent=2)
        rows: list[list[Text | str]] = []
        for line in plot.lines:
            values = {point.size: number(point.value) for point in line.points}
            rows.append([line.label, *(values.get(one, NOTHING) for one in sizes)])
        paper.table(["MPI build", *map(size, sizes)], rows, right=set(range(1, len(sizes) + 1)))
