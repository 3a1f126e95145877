"""docs/applications.md: what a release holds, and how far each package came by each builder."""

from __future__ import annotations

from dataclasses import dataclass

from mvstack.applications.record import STATES, Row, by_hand, hash_of, read_record
from mvstack.model.load import load_release
from mvstack.model.release import Package, Release
from mvstack.render.templates import template


@dataclass(frozen=True)
class Line:
    """A module of the release; ``cells`` has the builders with a recipe, None for one not tried."""

    package: Package
    cells: dict[str, Row | None]

    @property
    def seen(self) -> Row | None:
        """The row whose checks and figure are shown: EasyBuild's, else Spack's."""
        rows = (self.cells[builder] for builder in sorted(self.cells))
        return next((row for row in rows if row and row.checks), None)


def applications_page() -> str:
    """The page of the newest release. Raises InvalidInput when the record cannot be read."""
    release, record = load_release(), read_record()
    groups: dict[str, list[Line]] = {}
    for package in release.packages:
        lines, cells = groups.setdefault(package.group, []), _cells(package, release, record)
        # the release may have a row of one module for each builder
        same = [line.cells for line in lines if line.package.module == package.module]
        apart = next((other for other in same if not other.keys() & cells.keys()), None)
        if apart is None:
            lines.append(Line(package, cells))
        else:
            apart |= cells
    return template("applications.md", release=release, groups=groups)


def _cells(package: Package, release: Release, record: list[Row]) -> dict[str, Row | None]:
    file = by_hand(package, release)
    # what a row of the record must be true of, to count
    recipes = {"easybuild": hash_of(file) if file else "", "spack": package.spack}
    return {
        builder: max(
            (
                row
                for row in record
                if row.key[:3] == (package.name, package.version, builder) and row.of == recipe
            ),
            # of equals that over our own MPI, not that over what stands in for it
            key=lambda row: (STATES.index(row.state), "mvapich" in row.mpi, row.date),
            default=None,
        )
        for builder, recipe in recipes.items()
        if recipe and package.where.builder in ("", builder)
    }
