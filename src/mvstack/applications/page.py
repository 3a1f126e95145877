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
    """One module of the release, with a cell for each builder by its name."""

    package: Package
    cells: dict[str, Cell]

    @property
    def seen(self) -> Row | None:
        """The row whose checks and figure are shown: EasyBuild's, else Spack's."""
        rows = [cell.row for cell in self.cells.values() if cell.row]
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
            pairs = {name: (other.cells[name], cell) for name, cell in line.cells.items()}
            apart = all(NONE in (one.state, two.state) for one, two in pairs.values())
            if other.package.module == line.package.module and apart:
                cells = {
                    name: two if one.state == NONE else one for name, (one, two) in pairs.items()
                }
                found[number] = replace(other, cells=cells)
                break
        else:
            found.append(line)
    return found


def _line(package: Package, release: Release, record: list[Row]) -> Line:
    file = by_hand(package, release)
    # what a row of the record must be true of, to count
    recipes = {"easybuild": hash_of(file) if file else "", "spack": package.spack}
    return Line(
        package,
        {
            builder: _cell(
                [
                    row
                    for row in record
                    if row.key[:3] == (package.name, package.version, builder) and row.of == recipe
                ]
            )
            if recipe and package.where.builder in ("", builder)
            else Cell(NONE)
            for builder, recipe in recipes.items()
        },
    )


def _cell(rows: list[Row]) -> Cell:
    if not rows:
        return Cell(RECIPE)
    # of equals that over our own MPI, not that over what stands in for it
    best = max(rows, key=lambda row: (STATES.index(row.state), "mvapich" in row.mpi, row.date))
    return Cell(best.state, best)
