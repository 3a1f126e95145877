"""From the records of a tree to :class:`ReportData`: the only place that knows all of them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from mvstack.report.built import build_notices, builds_of, other_sources
from mvstack.report.data import Build, Case, Mpi, Notice, Reason, ReportData, Setting, Skip, State
from mvstack.report.ran import built_at, current_cases, in_order, relabel, run_of, same_module
from mvstack.report.records import Reader, Row, mapping, rows_of, text, whole
from mvstack.report.series import plots_of
from mvstack.tree.records import Records, mpi_contents

_PLAN = "run `mvstack install` again: it writes the plan before it builds"
_BUILDS = "run `mvstack install`: it records each build"
_SOURCES = "run `mvstack install`: it records each source"
_RESULTS = "run `mvstack test`"
_URGENCY = ("build", "record", "bytes")


def gather(tree: Path) -> ReportData:
    """What the records of ``tree`` (``<root>/<release>/<partition>``) say; never raises for it.

    A record that is missing or damaged is a notice in the result.
    """
    reader = Reader(tree / "records")
    plan = reader.document("plan.json", _PLAN)
    mpi_rows = list(rows_of(plan, "mpi"))
    package_rows = list(rows_of(plan, "packages"))
    build_rows = reader.rows("builds.jsonl", _BUILDS)
    source_rows = reader.rows("sources.jsonl", _SOURCES)
    files = reader.documents("results", _RESULTS)

    wanted = [{"name": _software(row), **row} for row in mpi_rows] + package_rows
    builds = builds_of(wanted, build_rows)
    others = other_sources(builds, source_rows)
    labels = [_label(row) for row in mpi_rows]
    runs = relabel(in_order(run_of(name, row) for name, row in files), labels)
    built = built_at(builds)
    there = mpi_contents({"mpi": list(rows_of(plan, "mpi"))}, Records(tree).hashes())
    contents = frozenset(there.items())
    cases = current_cases(runs, labels, built, contents)
    mpi = tuple(_mpi(row, builds, cases) for row in mpi_rows)
    # A package has run when a check that names it passed.
    builds = tuple(_ran(build, mpi, cases) for build in builds)
    fallback = text(plan, "fallback")
    latest = runs[-1] if runs else None
    return ReportData(
        tree=text({"": str(tree)}, ""),
        system=text(plan, "system"),
        partition=text(plan, "partition"),
        release=text(plan, "release"),
        builder=text(plan, "builder"),
        compiler=_compiler(plan),
        machine=_machine(plan, builds),
        fallback=fallback,
        notices=(
            *([Notice("fallback", "MPI", fallback)] if fallback else []),
            *sorted(
                [*build_notices(builds, others), *reader.notices, *_mpi_notices(mpi, builds)],
                key=lambda notice: _URGENCY.index(notice.kind),
            ),
        ),
        mpi=mpi,
        passed_over=tuple(
            dict.fromkeys(_reason(row, "build", "because") for row in rows_of(plan, "passed_over"))
        ),
        builds=builds,
        other_sources=others,
        latest=latest,
        runs=runs,
        cases=cases,
        skipped=_skipped(latest.skipped if latest else (), cases),
        plots=plots_of(runs, labels, built, contents),
        setup=_setup(tree),
        module_load=_module_load(plan, builds, mpi),
    )


def _shown(path: Path) -> str:
    return text({"": str(path)}, "")


def _software(row: Row) -> str:
    """The product as its makers write it: MVAPICH, MVAPICH2 and MPICH are all capitals."""
    return text(row, "software") or text(row, "product").upper()


def _label(row: Row) -> str:
    return text(row, "module") or f"{text(row, 'product')}/{text(row, 'version')}"


def _mpi(row: Row, builds: tuple[Build, ...], cases: tuple[Case, ...]) -> Mpi:
    label = _label(row)
    transport = mapping(row, "transport")
    parts = (text(transport, key) for key in ("library", "variants", "provision"))
    environment = mapping(row, "environment")
    built = any(build.state == "built" for build in builds if same_module(build.module, label))
    passed = any(case.result == "pass" for case in cases if case.mpi == label)
    state: State = "run" if passed else "built" if built else "rendered"
    return Mpi(
        label=label,
        product=text(row, "product"),
        software=_software(row),
        version=text(row, "version"),
        device=text(row, "device"),
        fabric=text(row, "fabric"),
        gpu=text(row, "gpu"),
        transport=", ".join(part for part in parts if part) or text(row, "transport"),
        pmi=text(row, "pmi"),
        launcher=text(row, "launcher"),
        launch=text(row, "launch"),
        settings=tuple(_setting(environment, name) for name in environment),
        not_upstream=text(row, "not_upstream"),
        reasons=_reasons(row),
        state=state,
    )


def _reasons(row: Row) -> tuple[Reason, ...]:
    """The reasons of each part of the choice; a plan with one reason for all has that one."""
    several = tuple(_reason(one, "what", "why") for one in rows_of(row, "reasons"))
    if several or not text(row, "why"):
        return several
    return (_reason(row, "", "why"),)


def _reason(row: Row, what: str, why: str) -> Reason:
    return Reason(text(row, what), text(row, why), text(row, "source"))


def _setting(environment: Row, name: str) -> Setting:
    row = mapping(environment, name)
    value = text(row, "value") or text(environment, name)
    return Setting(text({"": name}, ""), value, text(row, "why"), text(row, "source"))


def _ran(build: Build, mpi: tuple[Mpi, ...], cases: tuple[Case, ...]) -> Build:
    if build.state != "built":
        return build
    ran = any(one.state == "run" for one in mpi if same_module(one.label, build.module))
    ran = ran or any(case.result == "pass" and _uses(case, build) for case in cases)
    return replace(build, state="run") if ran else build


def _uses(case: Case, build: Build) -> bool:
    """Whether a check names a package, as its subject or as the benchmark it ran."""
    if build.mpi and not same_module(build.mpi, case.mpi):
        return False
    said = _letters(f"{case.check} {case.description} {case.benchmark}")
    return bool(_letters(build.package)) and _letters(build.package) in said


def _letters(name: str) -> str:
    """A name without what people write in between: OSU-Micro-Benchmarks, OSU Micro-Benchmarks."""
    return "".join(filter(str.isalnum, name.lower()))


def _mpi_notices(mpi: tuple[Mpi, ...], builds: tuple[Build, ...]) -> list[Notice]:
    """Plans over other bytes, unless the notice of their sources says so already."""
    said = [build.module for build in builds if any(not one.upstream for one in build.sources)]
    return [
        Notice("bytes", f"{one.name} ({one.label})", "not upstream's bytes", one.not_upstream)
        for one in mpi
        if one.not_upstream and not any(same_module(one.label, module) for module in said)
    ]


def _skipped(latest: tuple[Skip, ...], cases: tuple[Case, ...]) -> tuple[Skip, ...]:
    """What the latest run left out, and every case that was skipped, each once."""
    own = [Skip(_titled(case), case.why) for case in cases if case.result == "skip"]
    return tuple(dict.fromkeys([*latest, *own]))


def _titled(case: Case) -> str:
    return f"{case.check} with {case.mpi}" if case.mpi else case.check


def _compiler(plan: Row) -> str:
    row = mapping(plan, "compiler")
    name = f"{text(row, 'name')} {text(row, 'version')}".strip()
    origin = text(row, "origin")
    return f"the {origin}'s {name}" if name and origin else name


def _machine(plan: Row, builds: tuple[Build, ...]) -> tuple[tuple[str, str], ...]:
    """Facts of the machine: the plan's, and the hosts that built. Absent ones are left out."""
    cores = whole(plan, "cores")
    more = mapping(plan, "machine")
    mpi = next(rows_of(plan, "mpi"), {})
    hosts = dict.fromkeys(build.host for build in builds if build.host)
    facts = {
        "System and partition": f"{text(plan, 'system')}/{text(plan, 'partition')}".strip("/"),
        "Operating system": text(plan, "os"),
        "CPU target": text(plan, "target"),
        "Cores": "" if cores is None else f"{cores:,} {'core' if cores == 1 else 'cores'}",
        "Fabric": text(mpi, "fabric"),
        "GPU": text(mpi, "gpu"),
        "Compiler": _compiler(plan),
        "Built on": ", ".join(hosts),
        "Tree": text(plan, "tree"),
        **{text({"": key}, ""): text(more, key) for key in more},
    }
    return tuple((name, value) for name, value in facts.items() if value)


def _setup(tree: Path) -> str:
    """The line that makes `module` know the tree: the installed one, which needs no Lmod before."""
    init = tree / "init" / "bash"
    if init.is_file():
        return f"source {shlex.quote(_shown(init))}"
    return f"module use {shlex.quote(_shown(tree / 'modules' / 'Core'))}"


def _module_load(plan: Row, builds: tuple[Build, ...], mpi: tuple[Mpi, ...]) -> str:
    """``module load mvapich-stack/2026.11 hpcc/1.5.0``: the collection and its first program."""
    release = text(plan, "release")
    default = mpi[0].label if mpi else ""
    programs = {text(row, "module") for row in rows_of(plan, "packages")}
    program = next(
        (
            build.module
            for build in builds
            if build.module in programs
            and build.state in ("built", "run")
            and (not build.mpi or same_module(build.mpi, default))
        ),
        "",
    )
    names = [f"mvapich-stack/{release}" if release else "mvapich-stack", program]
    return " ".join(["module load", *(shlex.quote(name) for name in names if name)])
