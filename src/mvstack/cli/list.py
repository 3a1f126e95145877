"""`mvstack list`: systems, releases, packages, MPI builds and checks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument

from mvstack.cli import options
from mvstack.cli.show import installed, rows_of
from mvstack.install.stages import root_for
from mvstack.model.load import load_release, load_system, release_names, system_names
from mvstack.report.offers import Planned, planned
from mvstack.support.console import say
from mvstack.support.home import home
from mvstack.test.expected import expected_checks

app = options.commands()
Row = dict[str, Any]
What = Literal["systems", "releases", "packages", "mpi", "checks"]
# Columns of systems that are for scripts: a line of a terminal has no room for them.
FOR_SCRIPTS = ("title", "os", "seen", "because")


@app.command("list", epilog="Examples: mvstack list   ·   mvstack list packages --json")
def list_(
    what: Annotated[What, Argument(metavar="WHAT", help="What to list.")] = "systems",
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """List systems (with the releases installed here), releases, packages, MPI builds or checks."""
    made: dict[What, Callable[[], list[Row]]] = {
        "systems": lambda: _systems(planned(release), root),
        "releases": _releases,
        "packages": lambda: _packages(release),
        "mpi": lambda: _mpi(planned(release)),
        "checks": _checks,
    }
    rows = made[what]()
    shown = [{k: v for k, v in row.items() if k not in FOR_SCRIPTS} for row in rows]
    if what == "packages":
        shown = rows
    say(rows, as_json, rows_of(shown) if shown else f"no {what}")


def _systems(plans: Planned, root: Path | None) -> list[Row]:
    """A row a partition, also of nodes that get nothing; `local` is not looked at."""
    rows: list[Row] = []
    for offer in plans.every():
        part, system = offer.part, offer.system
        place = Path(root_for(system, root))
        row: Row = {"system": offer.title, "title": part.title, "os": system.os_of(offer.name)}
        row |= {"mpi": offer.mpi, "fabric": part.fabric, "gpu": part.gpu}
        row |= {"launcher": part.launcher, "builder": system.builder, "status": system.status}
        row |= {"seen": offer.seen, "because": offer.because}
        rows.append({**row, "installed": installed(place, f"{system.name}-{offer.name}")})
    keys = dict.fromkeys(rows[0] if rows else (), "")
    for system in map(load_system, plans.release.systems or system_names()):
        own = {"builder": system.builder, "status": system.status}
        if system.discover:
            there = installed(Path(root_for(system, root)), system.name)
            rows.append({**keys, **own, "system": system.name, "mpi": [], "installed": there})
        for name, nodes in system.not_offered.items():
            title = f"{system.name}/{name}"
            told = {"title": nodes.title, "because": nodes.because, "status": "not offered"}
            rows.append({**keys, **told, "system": title, "mpi": [], "installed": []})
    return sorted(rows, key=lambda row: str(row["system"]).partition("/")[0])


def _mpi(plans: Planned) -> list[Row]:
    """A row an MPI build, with the partitions that get it."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for offer in plans.every():
        for one in offer.plan.mpi if offer.plan else ():
            key = (one.module, one.software, one.device, one.transport["library"], one.pmi)
            rows.setdefault(key, []).append(offer.title)
    names = ("module", "product", "device", "over", "pmi")
    return [{**dict(zip(names, key, strict=True)), "on": rows[key]} for key in sorted(rows)]


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
            "builders": one.builders,
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
