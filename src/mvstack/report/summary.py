"""From the records of a tree to what both views say of it: what counts, in which words."""

import contextlib
import shlex
from pathlib import Path
from typing import Any

from mvstack.builders.base import builders
from mvstack.report.over_time import Course, courses_of
from mvstack.report.records import (
    Build,
    Case,
    Figure,
    Mpi,
    Notice,
    Package,
    Plan,
    Reader,
    Reason,
    Run,
    Source,
    when,
)
from mvstack.report.series import Plot, plots_of, since, sized
from mvstack.report.told import said_of
from mvstack.support.errors import MvstackError
from mvstack.support.units import clean, count, duration, quantity, size
from mvstack.tree.records import Records, mpi_contents

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
    "other": ("",),
}
DONE = ("built", "run")


class Report(Plan):
    """A tree's plan, and what came of it: all that both views print.

    ``cases`` are the results that count now; ``runs`` all runs, the oldest first.
    """

    machine: dict[str, str]
    notices: tuple[Notice, ...]
    builds: tuple[Build, ...]
    other_sources: tuple[Source, ...]
    latest: Run | None
    runs: tuple[Run, ...]
    cases: tuple[Case, ...]
    skipped: tuple[Reason, ...]
    told: tuple[Reason, ...]
    plots: tuple[Plot, ...]
    courses: tuple[Course, ...]
    setup: str
    module_load: str

    @property
    def counts(self) -> dict[str, int]:
        """How many cases ended how."""
        order = ("pass", "fail", "missing", "skip")
        return {name: sum(case.result == name for case in self.cases) for name in order}

    @property
    def build_seconds(self) -> float | None:
        """Time that building took in all; None when nothing says."""
        known = [build.seconds for build in self.builds if build.seconds is not None]
        return sum(known) if known else None

    @property
    def unbuilt(self) -> list[Build]:
        """The packages that are not built."""
        return [build for build in self.builds if build.state not in DONE]

    @property
    def loadable(self) -> bool:
        """Whether there is a module to load: some MPI build is built."""
        return any(mpi.state in DONE for mpi in self.mpi)

    @property
    def good(self) -> bool:
        """Everything planned is built and every check that ran or should have run passed."""
        count = self.counts
        return bool(
            not self.unbuilt and count["pass"] and not count["fail"] and not count["missing"]
        )

    @property
    def place(self) -> str:
        """``local/node``; the tree when the plan does not say."""
        return f"{self.system}/{self.partition}".strip("/") or self.tree

    @property
    def title(self) -> str:
        """``mvapich-stack 2026.11 on local/node``."""
        return " ".join(filter(None, ("mvapich-stack", self.release, "on", self.place)))

    @property
    def headline(self) -> str:
        """What this tree is, in one sentence."""
        if not self.mpi:
            return "The plan names no MPI build, so there is nothing to report on yet."
        names = " and ".join(
            f"{mpi.title} ({mpi.device})" if mpi.device else mpi.title for mpi in self.mpi
        )
        builder = builders().get(self.builder)
        how = (builder.title if builder else self.builder, self.compiler.title)
        made = " and ".join(filter(None, how))
        if not all(mpi.state in DONE for mpi in self.mpi):
            return f"{names}: rendered{f' for {made}' if made else ''}, not built yet."
        time = f" in {duration(self.build_seconds)}" if self.build_seconds else ""
        return f"{names}: built{f' with {made}' if made else ''}{time}."

    @property
    def verdict(self) -> str:
        """How the checks ended, in one line: failures first, never a success that was not seen."""
        counts = self.counts
        if not self.cases:
            return "no check has run"
        if self.good and not counts["skip"]:
            return f"all {count(counts['pass'], 'check')} passed"
        passed = count(counts["pass"], "check") if self.good else f"{counts['pass']:,}"
        parts = [
            f"{count(counts['fail'], 'check')} failed" if counts["fail"] else "",
            f"{counts['missing']:,} missing" if counts["missing"] else "",
            f"{passed} passed" if counts["pass"] else "",
            f"{counts['skip']:,} skipped" if counts["skip"] else "",
        ]
        tail = f"; {count(len(self.unbuilt), 'package')} not built" if self.unbuilt else ""
        return ", ".join(filter(None, parts)) + tail


def as_json(data: Report) -> dict[str, Any]:
    """The report for a script; the keys are the fields of :class:`Report` and its parts."""
    names = ("good", "loadable", "counts", "build_seconds")
    return {**data.model_dump(mode="json"), **{name: getattr(data, name) for name in names}}


def gather(tree: Path) -> Report:
    """What the records of ``tree`` (``<root>/<release>/<partition>``) say; never raises for it.

    A record that is missing or damaged is a notice in the result.
    """
    reader = Reader(tree / "records")
    plan, runs = reader.plan(), reader.runs()
    planned = _planned(plan, reader.rows(Build, "builds.jsonl"))
    counting = _counting(plan, planned, runs, Records(tree).hashes())
    current: dict[tuple[str, str], Case] = {}
    for run, case in counting:
        known = case.model_copy(update={"run": since(run, runs)})
        current.setdefault((case.check, case.mpi), known)
    cases = tuple(current.values())
    passed = [case for case in cases if case.result == "pass"]
    builds = tuple(_ran(build, passed) for build in planned)
    states = {build.module: build.state for build in builds}
    states |= dict.fromkeys((case.mpi for case in passed), "run")
    mpi = [one.model_copy(update={"state": states.get(one.module, "rendered")}) for one in plan.mpi]
    used = {source.sha256 for build in builds for source in build.sources}
    fetched = reader.rows(Source, "sources.jsonl")
    others = tuple(dict.fromkeys(one for one in fetched if one.sha256 not in {*used, ""}))
    failed = [
        Notice(
            kind="build",
            where=one.title,
            message="was not built: its build failed",
            todo=f"read {one.log}" if one.log else "install again with the same command",
        )
        for one in builds
        if one.result == "failed"
    ]
    latest = runs[-1] if runs else None
    todo = "run the checks again on a quiet machine; then look at what changed since"
    failed += [
        Notice(kind="slower", where=one.what, message=one.why, todo=todo)
        for one in (latest.slower if latest else ())
    ]
    skips = [*(latest.skipped if latest else ())]
    skips += [Reason(what=case.title, why=case.why) for case in cases if case.result == "skip"]
    told: tuple[Reason, ...] = ()
    with contextlib.suppress(MvstackError):  # `mvstack check` tells what is wrong with the file
        told = said_of(plan.system, plan.partition)
    own = {
        "tree": clean(str(tree)),
        "mpi": tuple(mpi),
        "passed_over": tuple(dict.fromkeys(plan.passed_over)),
    }
    return Report(
        **{**dict(plan), **own},
        machine=_machine(plan, builds),
        notices=(*failed, *reader.notices, *_other_bytes(mpi, builds, others)),
        builds=builds,
        other_sources=others,
        latest=latest,
        runs=tuple(runs),
        cases=cases,
        skipped=_each_reason_once(skips),
        told=told,
        plots=plots_of(counting, runs),
        courses=courses_of(tree, plan.release, runs),
        setup=_setup(tree),
        module_load=_module_load(plan, builds),
    )


def _planned(plan: Plan, rows: list[Build]) -> list[Build]:
    """The last row of each package, in the plan's order, then what else was built."""
    last = {row.easyconfig or f"{row.module} {row.mpi} {row.title}": row for row in rows}
    found = []
    for own in (*plan.mpi, *plan.packages):
        key = next((key for key, row in last.items() if _same(own, row)), "")
        row = last.pop(key, None) or Build(**own.model_dump(include=set(Package.model_fields)))
        found.append(row.model_copy(update={"planned": True, "mpi": row.mpi or own.mpi}))
    built = {True: "built", False: "rendered"}
    return [
        row.model_copy(update={"state": built[row.result in ("built", "cached")]})
        for row in (*found, *last.values())
    ]


def _same(own: Package, row: Build) -> bool:
    if own.easyconfig and row.easyconfig:
        return own.easyconfig == row.easyconfig
    over = {own.mpi, row.mpi} - {""}
    return bool(row.module) and own.module == row.module and len(over) < 2


def _counting(
    plan: Plan, builds: list[Build], runs: list[Run], hashes: dict[str, str]
) -> list[tuple[Run, Case]]:
    """The results that tell of the tree as it is, newest first.

    Their MPI is planned and was not built since. A run that says which content its MPI had counts
    for that content, wherever it ran: what a pipeline checked and then deployed is the same bytes.
    """
    planned = {mpi.module for mpi in plan.mpi}
    contents = mpi_contents({"mpi": [mpi.model_dump() for mpi in plan.mpi]}, hashes)
    built = {build.module: when(build.started) for build in builds}

    def counts(case: Case, run: Run) -> bool:
        if planned and case.mpi and case.mpi not in planned:
            return False
        if case.mpi in contents and run.contents.get(case.mpi) == contents[case.mpi]:
            return True
        began, built_at = when(run.started), built.get(case.mpi)
        return began is None or built_at is None or began >= built_at

    return [(run, case) for run in reversed(runs) for case in run.cases if counts(case, run)]


def _ran(build: Build, passed: list[Case]) -> Build:
    """``build`` with the state `run` when a check that used it passed."""
    ran = any(build.module == case.mpi or _uses(case, build) for case in passed)
    return build.model_copy(update={"state": "run"}) if ran and build.state == "built" else build


def _uses(case: Case, build: Build) -> bool:
    """Whether a check names a package, as its subject or as the benchmark it ran."""
    if build.mpi and build.mpi != case.mpi:
        return False
    said = _letters(f"{case.check} {case.description} {case.benchmark}")
    return bool(_letters(build.name)) and _letters(build.name) in said


def _letters(name: str) -> str:
    """A name without what people write in between: OSU-Micro-Benchmarks, OSU Micro-Benchmarks."""
    return "".join(filter(str.isalnum, name.lower()))


def _other_bytes(
    mpi: list[Mpi], builds: tuple[Build, ...], others: tuple[Source, ...]
) -> list[Notice]:
    """Each source that does not hold upstream's own bytes, once, and MPI builds planned so."""
    users: dict[Source, list[str]] = {source: [] for source in others}
    for build in builds:
        for source in build.sources:
            users.setdefault(source, []).append(build.title)
    said = {
        ", ".join(dict.fromkeys([*names, source.file])): source.note
        for source, names in users.items()
        if not source.upstream
    }
    told = {build.module for build in builds if not all(one.upstream for one in build.sources)}
    said |= {
        f"{one.title} ({one.module})": one.not_upstream
        for one in mpi
        if one.not_upstream and one.module not in told
    }
    message = "not upstream's bytes"
    reasons = {where: note.removeprefix(f"{message}: ") for where, note in said.items()}
    return [
        Notice(kind="bytes", where=where, message=message, todo=why or "no reason is recorded")
        for where, why in reasons.items()
    ]


def _each_reason_once(reasons: list[Reason]) -> tuple[Reason, ...]:
    whats: dict[str, dict[str, None]] = {}
    for one in reasons:
        whats.setdefault(one.why, {})[one.what] = None
    return tuple(Reason(what=", ".join(names), why=why) for why, names in whats.items())


def _machine(plan: Plan, builds: tuple[Build, ...]) -> dict[str, str]:
    """Facts of the machine: the plan's, and the hosts that built. Absent ones are left out."""
    mpi = plan.mpi[0] if plan.mpi else Mpi()
    facts = {
        "System and partition": f"{plan.system}/{plan.partition}".strip("/"),
        "Operating system": plan.os,
        "CPU target": plan.target,
        "Cores": "" if plan.cores is None else count(plan.cores, "core"),
        "Fabric": mpi.fabric,
        "GPU": mpi.gpu,
        "Compiler": plan.compiler.title,
        "Built on": ", ".join(dict.fromkeys(build.host for build in builds if build.host)),
        "Tree": plan.tree,
    }
    return {name: value for name, value in facts.items() if value}


def _setup(tree: Path) -> str:
    """The line that makes `module` know the tree: the installed one, which needs no Lmod before."""
    init = tree / "init" / "bash"
    found = init.is_file()
    word, path = ("source", init) if found else ("module use", tree / "modules" / "Core")
    return f"{word} {shlex.quote(clean(str(path)))}"


def _module_load(plan: Plan, builds: tuple[Build, ...]) -> str:
    """``module load mvapich-stack/2026.11 hpcc/1.5.0``: the collection and its first program."""
    default = plan.mpi[0].module if plan.mpi else ""
    own = {package.module for package in plan.packages}
    programs = (
        build.module
        for build in builds
        if build.module in own and build.state in DONE and build.mpi in ("", default)
    )
    names = ["/".join(filter(None, ("mvapich-stack", plan.release))), next(programs, "")]
    return " ".join(["module load", *(shlex.quote(name) for name in names if name)])


# --- words and numbers that both views share ------------------------------------------------------


def moment(stamp: str) -> str:
    """A recorded time to the minute with its zone; what is no time is given back as it is."""
    found = when(stamp)
    if found is None:
        return stamp
    zone = "UTC" if not found.utcoffset() else found.strftime("UTC%z")
    return f"{found:%Y-%m-%d %H:%M} {zone}"


def grouped_steps(build: Build) -> list[tuple[str, float]]:
    """The seconds of each group of steps that took any, in the order of the building."""
    sums = dict.fromkeys(STEP_GROUPS, 0.0)
    for step, seconds in build.steps.items():
        begins = (name for name, words in STEP_GROUPS.items() if step.lower().startswith(words))
        sums[next(begins)] += seconds
    return [(name, seconds) for name, seconds in sums.items() if seconds > 0]


def label(build: Build) -> str:
    """The module of a planned package; the name of what the builder installed for itself."""
    return build.module if build.planned and build.module else build.title or build.easyconfig


def scalars(case: Case) -> list[str]:
    """Figures of a case that are no curve, each with its unit and what it was held against."""
    return [_scalar(one) for one in case.figures if one.size is None or not sized(case)]


def _scalar(figure: Figure) -> str:
    name = f"{figure.name} at {size(figure.size)}" if figure.size is not None else figure.name
    held = ""
    if figure.reference is not None:
        allowed = f", {figure.allowed} allowed" if figure.allowed else ""
        held = f" (reference {quantity(figure.reference, figure.unit)}{allowed})"
    return f"{name} {quantity(figure.value, figure.unit)}{held}".strip()
