"""docs/applications.md: what a release holds, and how far each package came by each builder."""

from __future__ import annotations

from dataclasses import dataclass

from mvstack import easyconfigs
from mvstack.applications.record import Row, hash_of, read_record
from mvstack.model.load import load_release
from mvstack.model.release import Package, Release
from mvstack.templates import template

NONE, RECIPE = "—", "recipe"


@dataclass(frozen=True)
class Cell:
    """How far a builder came with a package, and the row that says so."""

    state: str
    row: Row | None = None


@dataclass(frozen=True)
class Line:
    """One package of the release with a cell for each builder."""

    package: Package
    easybuild: Cell
    spack: Cell


def applications_page() -> str:
    """The page of the newest release. Raises InvalidInput when the record cannot be read."""
    release, record = load_release(), read_record()
    lines = [_line(package, release, record) for package in release.packages]
    groups = list(dict.fromkeys(line.package.group for line in lines))
    return template(
        "applications.md",
        release=release,
        groups={group: [line for line in lines if line.package.group == group] for group in groups},
        record=record,
    )


def _line(package: Package, release: Release, record: list[Row]) -> Line:
    own = [row for row in record if (row.package, row.version) == (package.name, package.version)]
    file = _by_hand(package, release)
    now = hash_of(file) if file else ""
    builds = [row for row in own if row.builder == "easybuild" and now and row.of == now]
    specs = [row for row in own if row.builder == "spack" and row.of == package.spack]
    return Line(
        package,
        _cell(builds, bool(file), package.where.builder == "spack"),
        _cell(specs, bool(package.spack), package.where.builder == "easybuild"),
    )


def _cell(rows: list[Row], recipe: bool, elsewhere: bool) -> Cell:
    if not recipe or elsewhere:
        return Cell(NONE)
    if not rows:
        return Cell(RECIPE)
    best = max(rows, key=lambda row: (row.state != "failed", row.date, row.state == "run"))
    return Cell(best.state, best)


def _by_hand(package: Package, release: Release) -> str:
    """The easyconfig that is written by hand; "" where there is none."""
    if not package.toolchain:
        return ""
    there = easyconfigs.index()
    if package.toolchain == "gcc":
        files = [
            name for name in there if name.startswith(f"{package.name}-{package.version}-GCC-")
        ]
        return files[0] if files else ""
    for product in ("mvapich", "mpich"):
        name = easyconfigs.package_file(
            package.name,
            package.version,
            product,
            release.name,
            "ch4:ofi",
            package.toolchain,
            package.suffix,
        )
        if name in there:
            return name
    return ""
