"""List, fetch, verify and add files of the source mirror."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option

from mvstack.cli import options
from mvstack.install import lmod, stages
from mvstack.model.load import system_names
from mvstack.plan.easyconfigs import index
from mvstack.sources import accepted
from mvstack.sources.accepted import add_source, meant
from mvstack.sources.fetch import Fetcher, site_mirrors
from mvstack.sources.recipes import specs_from_easyconfigs as read_specs
from mvstack.sources.spec import SourceSpec, named
from mvstack.sources.store import ASK_OWNER, Store
from mvstack.support.console import say, table
from mvstack.support.errors import CheckFailed, Problem, SourceError
from mvstack.support.progress import Step

app = options.commands(__doc__)


def _store(root: Path | None) -> Store:
    return Store(Path(stages.default_root(root)) / "sources")


def _all_specs() -> list[SourceSpec]:
    return [*read_specs(index().values()), *lmod.specs()]


def _specs_of_system(name: str, root: Path | None, recipes: list[SourceSpec]) -> list[SourceSpec]:
    """The sources that the plan of a system (or of one partition of it) needs, whoever builds it.

    By name and version: the recipe that knows the file may be for another compiler or MPI.
    """
    system, partitions = stages.load(name)
    wanted: dict[str, None] = {}
    for partition in partitions:
        plan = stages.plan_for(system, partition, None, root)
        wanted.update((f"{build.product}@{build.version}", None) for build in plan.mpi)
        wanted.update((f"{one.name.lower()}@{one.version}", None) for one in plan.packages)
    wanted.update((spec.name, None) for spec in lmod.specs())  # a machine may lack it
    for one in wanted.keys() - {spec.name for spec in recipes}:
        typer.echo(f"{name}: {one} has no recipe here; the builder fetches it", err=True)
    return [spec for spec in recipes if spec.name in wanted]


def _specs(names: list[str], root: Path | None) -> list[SourceSpec]:
    """The sources that ``names`` mean: systems, NAME@VERSION, NAME; every one without names."""
    recipes = _all_specs()
    found: dict[tuple[str, str], SourceSpec] = {}
    for name in names:
        is_system = name.partition("/")[0] in system_names() or name.endswith((".yaml", ".yml"))
        for spec in _specs_of_system(name, root, recipes) if is_system else named(recipes, name):
            found.setdefault((spec.software, spec.filename), spec)
    return list(found.values()) if names else recipes


def _complete(incomplete: str) -> list[str]:
    known = sorted({spec.name for spec in _all_specs()})
    own = [one for one in known if one.startswith(incomplete.lower())]
    return options.systems(incomplete) + own


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} B"


@app.command("list", epilog="Examples: mvstack sources list   ·   mvstack sources list --json")
def list_(root: options.Root = None, as_json: options.Json = False) -> None:
    """List the files in the mirror, with their origin and what was accepted."""
    store = _store(root)
    entries = store.entries()
    own = {one.sha256 for one in accepted.all_accepted()}
    data = [{**asdict(one), "accepted": one.sha256 in own} for one in entries]
    rows = []
    for one in entries:
        place = one.place + (f" ({one.note})" if one.note else "")
        rows.append((one.software, one.filename, _size(one.size), one.sha256[:16], place))
    shown = table(("source", "file", "size", "sha256", "from"), rows)
    total = f"{len(entries)} files, {_size(sum(one.size for one in entries))} in {store.root}"
    empty = f"{store.root} is empty; `mvstack sources fetch` fills it."
    say(data, as_json, *([shown, total] if entries else [empty]))


@app.command(epilog="Example: mvstack sources verify --remove-damaged")
def verify(
    root: options.Root = None,
    remove_damaged: Annotated[
        bool, Option("--remove-damaged", help="Remove files that fail their hash.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Hash every file in the mirror again. Removes nothing unless told to."""
    store = _store(root)
    verdicts = []
    with options.progress(as_json).step("verify", str(store.root)) as step:
        for verdict in store.verify():
            verdicts.append(verdict)
            step.note(f"{len(verdicts)} files")
    bad = [verdict for verdict in verdicts if verdict.state != "good"]
    gone = [one for one in bad if one.state != "unreadable"] if remove_damaged else []
    for verdict in gone:
        store.remove(verdict)
    data = [
        {"state": one.state, "path": str(one.path), "removed": one in gone, **asdict(one.entry)}
        for one in verdicts
    ]
    todo = "mvstack sources verify --remove-damaged, then fetch it again"
    left = [
        Problem(
            f"{one.state}: {one.entry.filename} {one.entry.software}",
            str(one.path),
            todo=ASK_OWNER if one.state == "unreadable" else todo,
        )
        for one in bad
        if one not in gone
    ]
    failed = CheckFailed(*left, outcome="" if gone else "Nothing was removed.")
    good = f"{len(verdicts) - len(bad)} of {len(verdicts)} files match their hash"
    removed = (f"removed ({one.state}): {one.path}" for one in gone)
    say(data, as_json, good, *removed, failed=failed)


@app.command(
    epilog="Examples: mvstack sources fetch   ·   mvstack sources fetch hpcc@1.5.0 mpich   ·   "
    "mvstack sources fetch local   ·   mvstack sources fetch --mirror /mnt/mirror mvapich@4.0"
)
def fetch(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="SYSTEM[/PARTITION]|FILE|NAME[@VERSION]",
            help="Systems (all that their plans need) or sources; everything if none is named.",
            autocompletion=_complete,
        ),
    ] = None,
    root: options.Root = None,
    mirror: Annotated[
        list[str] | None,
        Option(
            "--mirror",
            metavar="DIR|URL",
            help="Mirror to ask first, before MVSTACK_MIRRORS; repeatable.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Fetch sources into the mirror. A source that fails does not stop the others."""
    specs = _specs(names or [], root)
    shown = options.progress(as_json, len(specs))
    fetcher = Fetcher(_store(root), site_mirrors(mirror or []))
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for spec in specs:
        try:
            with shown.step("fetch", f"{spec.name} {spec.filename}") as step:
                fetcher.on_progress = _noting(step)
                fetched = fetcher.fetch(spec)
                fetcher.link_easybuild(spec, fetched)
        except SourceError as error:
            problems += error.problems
        else:
            rows.append({"source": spec.name, **fetched.as_dict()})
            for why in fetched.passed_over:
                typer.echo(f"  passed over: {why}", err=True)
    outcome = f"{len(rows)} of {len(specs)} sources are in the mirror."
    failed = SourceError(*problems, outcome=outcome)
    data = {"sources": rows, **(failed.as_dict() if problems else {"problems": []})}
    say(data, as_json, *([_fetched(rows)] if rows else []), failed=failed)


def _fetched(rows: list[dict[str, Any]]) -> Table:
    shown = []
    for row in rows:
        whose = row["note"] or ("upstream's" if row["upstream"] else "not upstream's")
        shown.append((row["source"], row["file"], row["sha256"][:16], row["place"], whose))
    return table(("source", "file", "sha256", "from", "bytes"), shown)


def _noting(step: Step) -> Callable[[str, int, int], None]:
    def note(_: str, done: int, total: int) -> None:
        step.note(f"{_size(done)} of {_size(total)}" if total else _size(done))

    return note


@app.command(
    epilog="Examples: mvstack sources add mvapich-4.0.tar.gz --as mvapich@4.0   ·   "
    "mvstack sources add my.tar.gz --as mvapich@4.0 --accept-hash SHA256 "
    "--reason 'site patch 12'"
)
def add(
    file: Annotated[Path, Argument(metavar="FILE", help="File to add.")],
    name: Annotated[
        str,
        Option(
            "--as",
            metavar="NAME@VERSION",
            help="Source that the file is.",
            autocompletion=_complete,
        ),
    ],
    accept_hash: Annotated[
        str | None,
        Option(help="SHA-256 of the file; accept it although it is not upstream's."),
    ] = None,
    reason: Annotated[
        str | None, Option(help="Why you accept these bytes; shown in module help.")
    ] = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Add a file to the mirror: upstream's own, or one that you accept instead."""
    spec = meant(named(_all_specs(), name), file)
    row = add_source(_store(root), spec, file, accept_hash, reason)
    said = f"{row['source']}: {row['file']} is in the mirror, sha256 {row['sha256']}"
    say(row, as_json, said, *filter(None, [row["note"]]))


@app.command(epilog="Example: mvstack sources forget mvapich@4.0")
def forget(
    name: Annotated[
        str,
        Argument(metavar="NAME@VERSION", help="Source that is accepted.", autocompletion=_complete),
    ],
    as_json: options.Json = False,
) -> None:
    """Undo `add --accept-hash`. The file stays in the mirror."""
    gone = [
        one
        for spec in named(_all_specs(), name)
        for one in accepted.forget(spec.software, spec.version, spec.filename)
    ]
    lines = [f"{one.software} {one.version}: {one.sha256} is no longer accepted" for one in gone]
    data = [one.model_dump() for one in gone]
    say(data, as_json, *(lines or [f"nothing was accepted for {name}"]))
