"""docs/applications.md: what a release holds, and how far each package came by each builder."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mvstack.applications.record import STATES, Row, by_hand, hash_of, read_record
from mvstack.model.load import load_release
from mvstack.model.release import Package, Release
from mvstack.render.templates import template

NONE, RECIPE = "—", "recipe"


@dataclass(frozen=True)
class Cell:
    """How far a builder came with a package, and the row that says so."""

    state: str
    row: Row | None = None


@dataclass(frozen=True)
class Line:
    """One module of the release with a cell for each builder."""

    package: Package
    easybuild: Cell
    spack: Cell

    @property
    def seen(self) -> Row | None:
        """The row whose checks and figure are shown: EasyBuild's, else Spack's."""
        rows = [cell.row for cell in (self.easybuild, self.spack) if cell.row]
        return next((row for row in rows if row.checks), None)


def applications_page() -> str:
    """The page of the newest release. Raises InvalidInput when the record cannot be read."""
    release, record = load_release(), read_record()
    lines = [_line(package, release, record) for package in release.packages]
    groups = list(dict.fromkeys(line.package.group for line in lines))
    of_group = {group: [one for one in lines if one.package.group == group] for group in groups}
    return template(
        "applications.md",
        release=release,
        groups={group: _joined(lines) for group, lines in of_group.items()},
        why=of_group,
        record=record,
    )


def _joined(lines: list[Line]) -> list[Line]:
    """One line a module: the release may have a row of it for each builder."""
    found: list[Line] = []
    for line in lines:
        for number, other in enumerate(found):
            if other.package.module == line.package.module and _apart(other, line):
                easybuild = line if other.easybuild.state == NONE else other
                spack = line if other.spack.state == NONE else other
                found[number] = replace(other, easybuild=easybuild.easybuild, spack=spack.spack)
                break
        else:
            found.append(line)
    return found


def _apart(one: Line, other: Line) -> bool:
    """No builder has a recipe of both."""
    builders = [(one.easybuild, other.easybuild), (one.spack, other.spack)]
    return all(NONE in (first.state, second.state) for first, second in builders)


def _line(package: Package, release: Release, record: list[Row]) -> Line:
    own = [row for row in record if (row.package, row.version) == (package.name, package.version)]
    file = by_hand(package, release)
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
    # of equals that over our own MPI, not that over what stands in for it
    best = max(rows, key=lambda row: (STATES.index(row.state), "mvapich" in row.mpi, row.date))
    return Cell(best.state, best)
