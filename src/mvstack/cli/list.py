"""`mvstack list`: systems, releases, packages and checks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument

from mvstack.cli import options
from mvstack.install.stages import root_for
from mvstack.model.load import load_release, load_system, release_names, system_names
from mvstack.support.console import say, table
from mvstack.support.home import home
from mvstack.test.expected import expected_checks

app = options.commands()
Row = dict[str, Any]
What = Literal["systems", "releases", "packages", "checks"]


@app.command("list", epilog="Examples: mvstack list   ·   mvstack list packages --json")
def list_(
    what: Annotated[What, Argument(metavar="WHAT", help="What to list.")] = "systems",
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """List systems (with the releases installed here), releases, packages or checks."""
    made: dict[What, Callable[[], list[Row]]] = {
        "systems": lambda: _systems(root),
        "releases": _releases,
        "packages": lambda: _packages(release),
        "checks": _checks,
    }
    rows = made[what]()
    cells = (
        [" ".join(value) if isinstance(value, list) else str(value) for value in row.values()]
        for row in rows
    )
    shown = table(list(rows[0]) if rows else (), cells)
    say(rows, as_json, shown)


def _systems(root: Path | None) -> list[Row]:
    """A row a partition; that of `local` is not looked for."""
    rows: list[Row] = []
    for name in system_names():
        system = load_system(name)
        place = Path(root_for(system, root))
        for partition, part in system.partitions.items():
            row: Row = {"system": f"{name}/{partition}", "builder": system.builder}
            row |= {"os": part.os or system.os, "fabric": part.fabric, "gpu": part.gpu}
            rows.append({**row, "installed": _installed(place, f"{name}-{partition}")})
        if system.discover:
            row = {"system": name, "builder": system.builder, "os": "", "fabric": "", "gpu": ""}
            rows.append({**row, "installed": _installed(place, name)})
    return rows


def _installed(root: Path, folder: str) -> list[str]:
    """The releases below ``root`` that have a tree of that name."""
    plans = root.glob(f"*/{folder}/records/plan.json")
    return sorted(path.parents[2].name for path in plans)


def _releases() -> list[Row]:
    return [
        {
            "release": one.name,
            "status": one.status,
            "mpi": [f"{name}/{rows[0].version}" for name, rows in one.mpi.items() if rows],
            "packages": len(one.packages),
        }
        for one in map(load_release, release_names())
    ]


def _packages(release: str | None) -> list[Row]:
    return [
        {
            "module": one.module,
            "profile": one.profile,
            "builders": [
                builder
                for builder, there in (("easybuild", one.toolchain), ("spack", one.spack))
                if there and one.where.builder in ("", builder)
            ],
            "licence": one.licence,
            "title": one.title,
        }
        for one in load_release(release).packages
    ]


def _checks() -> list[Row]:
    """A row a check, with the software that it is of, and its tags."""
    rows: dict[str, Row] = {}
    for folder in home().folders("checks"):
        for one in expected_checks(folder, []):
            what = {"of": one.software or "mpi", "tags": sorted(one.tags)}
            rows[one.name] = {"check": one.name, **what, "file": home().named(one.file)}
    return [rows[name] for name in sorted(rows)]
