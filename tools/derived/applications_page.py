"""docs/applications.md: how far each package came on a machine, by each builder."""

from __future__ import annotations

from dataclasses import dataclass

from mvstack.model.load import load_release
from mvstack.model.release import Package, Release
from mvstack.render.templates import template
from mvstack.report.seen import Row, best, counting, read_record


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
    found = counting(package, release, record)
    return {builder: next(iter(best(rows)), None) for builder, rows in found.items()}
