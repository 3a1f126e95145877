"""The sentences and groups that both views share: headline, verdict, key figures, step groups."""

from __future__ import annotations

from dataclasses import dataclass

from mvstack.report.data import Build, Case, Figure, Mpi, Plot, Point, ReportData
from mvstack.report.ran import when
from mvstack.report.series import sized
from mvstack.support.units import duration, number, quantity, size, unit_name

BUILDERS = {"easybuild": "EasyBuild", "spack": "Spack"}
# EasyBuild has a score of steps; a reader asks where the time went, not for all their names. These
# are the beginnings of its names (`--stop`, `--module-only`) and of what it prints when one begins.
STEP_GROUPS = {
    "prepare": (
        *("fetch", "ready", "checksum", "source", "patch", "prepar", "unpack", "start"),
        *("resolving", "creating build dir"),
    ),
    "configure": ("configur",),
    "build": ("build",),
    "test": ("test",),
    "install": ("install", "extensions", "taking care of extensions", "postiter", "postproc"),
    "sanity check": ("sanity",),
}
OTHER = "other"


@dataclass(frozen=True)
class KeyFigure:
    """One number for the top of the report, with its unit and what it is."""

    number: str
    unit: str
    what: str


def count(total: int, noun: str) -> str:
    """``1 check``, ``3 checks``."""
    return f"{total:,} {noun}" if total == 1 else f"{total:,} {noun}s"


def moment(stamp: str) -> str:
    """A recorded time to the minute with its zone; what is no time is given back as it is."""
    found = when(stamp)
    if found is None:
        return stamp
    zone = "UTC" if not found.utcoffset() else found.strftime("UTC%z")
    return f"{found:%Y-%m-%d %H:%M} {zone}"


def place(data: ReportData) -> str:
    """``local/node``; the tree when the plan does not say."""
    return f"{data.system}/{data.partition}".strip("/") or data.tree


def title(data: ReportData) -> str:
    """``mvapich-stack 2026.11 on local/node``."""
    return " ".join(part for part in ("mvapich-stack", data.release, "on", place(data)) if part)


def verdict(data: ReportData) -> str:
    """How the checks ended, in one line: failures first, never a success that was not seen."""
    counts = data.counts
    parts = [
        f"{count(counts['fail'], 'check')} failed" if counts["fail"] else "",
        f"{counts['missing']:,} missing" if counts["missing"] else "",
        f"{counts['pass']:,} passed" if counts["pass"] else "",
        f"{counts['skip']:,} skipped" if counts["skip"] else "",
    ]
    said = ", ".join(part for part in parts if part)
    if not said:
        return "no check has run"
    if data.good and not counts["skip"]:
        return f"all {count(counts['pass'], 'check')} passed"
    unbuilt = [build for build in data.builds if build.state not in ("built", "run")]
    tail = f"; {count(len(unbuilt), 'package')} not built" if unbuilt else ""
    first = f"{count(counts['pass'], 'check')} passed"
    return said.replace(f"{counts['pass']:,} passed", first, 1) + tail if data.good else said + tail


def headline(data: ReportData) -> str:
    """What this tree is, in one or two sentences."""
    if not data.mpi:
        return "The plan names no MPI build, so there is nothing to report on yet."
    names = " and ".join(
        f"{mpi.name} ({mpi.device})" if mpi.device else mpi.name for mpi in data.mpi
    )
    how = [BUILDERS.get(data.builder, data.builder), data.compiler]
    made = " and ".join(part for part in how if part)
    if not all(mpi.state in ("built", "run") for mpi in data.mpi):
        return f"{names}: rendered{f' for {made}' if made else ''}, not built yet."
    time = f" in {duration(data.build_seconds)}" if data.build_seconds else ""
    return f"{names}: built{f' with {made}' if made else ''}{time}."


def key_figures(data: ReportData) -> tuple[KeyFigure, ...]:
    """Latency and allreduce of a small message and the best bandwidth of the default MPI."""
    default = data.mpi[0].label if data.mpi else ""
    found = []
    for plot in data.plots[:3]:
        line = next((line for line in plot.lines if line.label.startswith(default)), plot.lines[0])
        known = [point for point in line.points if point.value is not None]
        point = _telling(plot, known)
        if point is not None:
            who = f", {line.label}" if len(data.mpi) > 1 else ""
            what = f"{plot.title.lower()} at {size(point.size)}{who}"
            found.append(KeyFigure(number(point.value), unit_name(plot.unit), what))
    return tuple(found)


def _telling(plot: Plot, known: list[Point]) -> Point | None:
    if plot.higher_is_better:
        return max(known, key=lambda point: point.value or 0.0, default=None)
    return next((point for point in known if point.size >= 8), known[-1] if known else None)


def grouped_steps(build: Build) -> tuple[tuple[str, float], ...]:
    """The seconds of each group of steps that took any, in the order of the building."""
    sums: dict[str, float] = dict.fromkeys((*STEP_GROUPS, OTHER), 0.0)
    for name, seconds in build.steps:
        sums[_group(name.lower())] += seconds
    return tuple((name, seconds) for name, seconds in sums.items() if seconds > 0)


def _group(step: str) -> str:
    for group, beginnings in STEP_GROUPS.items():
        if step.startswith(beginnings):
            return group
    return OTHER


def label(build: Build) -> str:
    """The module of a planned package; the name of what the builder installed for itself."""
    name = f"{build.package} {build.version}".strip()
    return build.module if build.planned and build.module else name or build.easyconfig


def scalars(case: Case) -> tuple[str, ...]:
    """Figures of a case that are no curve, each with its unit and what it was held against."""
    if sized(case):
        return ()
    return tuple(_scalar(figure) for figure in case.figures)


def _scalar(figure: Figure) -> str:
    name = f"{figure.name} at {size(figure.size)}" if figure.size is not None else figure.name
    held = ""
    if figure.reference is not None:
        allowed = f", {figure.allowed} allowed" if figure.allowed else ""
        held = f" (reference {quantity(figure.reference, figure.unit)}{allowed})"
    return f"{name} {quantity(figure.value, figure.unit)}{held}".strip()


def track(mpi: Mpi | Build, builder: str) -> tuple[tuple[str, bool], ...]:
    """The states on the way of this builder, each with whether it is reached.

    EasyBuild resolves while it builds, so "concretized" is a state of Spack's alone.
    """
    words = ["rendered", "concretized", "built", "run"]
    reached = words.index(mpi.state)
    return tuple(
        (word, index <= reached)
        for index, word in enumerate(words)
        if word != "concretized" or builder == "spack"
    )


def measured_by(plot: Plot) -> str:
    """The benchmarks that the lines of a plot are of."""
    return ", ".join(dict.fromkeys(line.benchmark for line in plot.lines if line.benchmark))


def axis(plot: Plot) -> str:
    """What the values are and which way is good: ``µs, lower is better``."""
    way = "higher is better" if plot.higher_is_better else "lower is better"
    return f"{unit_name(plot.unit)}, {way}" if plot.unit else way


def example(mpi: Mpi) -> str:
    """The launch line of an MPI build with two ranks of a program of the reader's."""
    return mpi.launch.replace("{ranks}", "2").replace("{program}", "./program").strip()
