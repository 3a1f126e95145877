"""``mvstack sources``: look after the source mirror."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvstack.support.errors import CheckFailed, MvstackError, Problem, SourceError

if TYPE_CHECKING:
    from rich.table import Table

    from mvstack.sources.spec import SourceSpec
    from mvstack.sources.store import Store, Verdict
    from mvstack.support.progress import Step

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The source mirror: what is there, bring it, check it, add to it.",
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Install root whose mirror is meant (else MVSTACK_ROOT, default)."),
]


def _store(root: Path | None) -> Store:
    from mvstack.install.stages import default_root
    from mvstack.sources.store import Store

    return Store(Path(root.absolute() if root else default_root()) / "sources")


def _all_specs() -> list[SourceSpec]:
    from mvstack.plan.easyconfigs import index
    from mvstack.sources.recipes import specs_from_easyconfigs

    return specs_from_easyconfigs(index().values())


def _specs_of_system(name: str, root: Path | None, recipes: list[SourceSpec]) -> list[SourceSpec]:
    """The sources that the plan of a system (or of one partition of it) needs, whoever builds it.

    By name and version: the recipe that knows the file may be for another compiler or MPI.
    """
    from mvstack.install import stages

    system, partitions = stages.load(name)
    wanted: dict[str, None] = {}
    for partition in partitions:
        plan = stages.plan_for(system, partition, None, root)
        wanted.update((f"{build.product}@{build.version}", None) for build in plan.mpi)
        wanted.update((f"{one.name.lower()}@{one.version}", None) for one in plan.packages)
    for one in wanted.keys() - {spec.name for spec in recipes}:
        typer.echo(f"{name}: {one} has no recipe here; its builder fetches it", err=True)
    return [spec for spec in recipes if spec.name in wanted]


def _specs(names: list[str], root: Path | None) -> list[SourceSpec]:
    """The sources that ``names`` mean: systems, NAME@VERSION, NAME; every one without names."""
    from mvstack.model.load import system_names
    from mvstack.sources.spec import named

    recipes = _all_specs()
    if not names:
        return recipes
    found: dict[tuple[str, str], SourceSpec] = {}
    for name in names:
        is_system = name.partition("/")[0] in system_names() or name.endswith((".yaml", ".yml"))
        for spec in _specs_of_system(name, root, recipes) if is_system else named(recipes, name):
            found.setdefault((spec.software, spec.filename), spec)
    return list(found.values())


def _complete(incomplete: str) -> list[str]:
    from mvstack.model.load import system_names

    known = [*system_names(), *sorted({spec.name for spec in _all_specs()})]
    return [name for name in known if name.startswith(incomplete.lower())]


def _emit(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2))


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        right = column in ("size",)
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table


def _show(table: Table) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # Through a pipe nothing is cut or wrapped: a path over two lines cannot be used.
        console = Console(highlight=False, width=400)
    console.print(table)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count:,} B"


@app.command("list", epilog="Examples: mvstack sources list   ·   mvstack sources list --json")
def list_(root: Root = None, as_json: Json = False) -> None:
    """Say what the mirror holds, where it came from, and what was accepted."""
    from mvstack.sources.accepted import all_accepted
    from mvstack.support.units import one_line

    store = _store(root)
    entries = store.entries()
    accepted = {one.sha256: one for one in all_accepted()}
    if as_json:
        _emit([{**asdict(e), "accepted": e.sha256 in accepted} for e in entries])
        return
    if not entries:
        typer.echo(f"{store.root} holds nothing yet; `mvstack sources fetch` brings sources.")
        return
    table = _table("source", "file", "size", "sha256", "from")
    for entry in entries:
        note = f" ({entry.note})" if entry.note else ""
        table.add_row(
            *(one_line(text) for text in (
                entry.software, entry.filename, _size(entry.size), entry.sha256[:16],
                entry.place + note)),
        )  # fmt: skip
    _show(table)
    typer.echo(f"{len(entries)} files, {_size(sum(e.size for e in entries))} in {store.root}")


@app.command(
    epilog="Examples: mvstack sources verify   ·   mvstack sources verify --remove-damaged"
)
def verify(
    root: Root = None,
    remove_damaged: Annotated[
        bool, typer.Option("--remove-damaged", help="Remove what is not what its name says.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Hash every file of the mirror again. Nothing is removed unless asked."""
    from mvstack.support.progress import Progress

    store = _store(root)
    verdicts: list[Verdict] = []
    with Progress(mode="quiet" if as_json else "auto").step("verify", str(store.root)) as step:
        for verdict in store.verify():
            verdicts.append(verdict)
            step.note(f"{len(verdicts)} files")
    bad = [verdict for verdict in verdicts if verdict.state in ("damaged", "missing")]
    strays = [verdict for verdict in verdicts if verdict.state == "stray"]
    for verdict in bad if remove_damaged else []:
        store.remove(verdict)
    if as_json:
        _emit(
            [
                {
                    "state": verdict.state,
                    "path": str(verdict.path),
                    "removed": remove_damaged and verdict in bad,
                    **asdict(verdict.entry),
                }
                for verdict in verdicts
            ]
        )
        raise typer.Exit(CheckFailed.exit_code if bad and not remove_damaged else 0)
    ours = len(verdicts) - len(strays)
    typer.echo(f"{ours - len(bad)} of {ours} files are what their hash says")
    for verdict in strays:
        typer.echo(f"not one of the mirror's own files, left alone: {verdict.path}")
    for verdict in bad if remove_damaged else []:
        typer.echo(f"removed ({verdict.state}): {verdict.path}")
    if bad and not remove_damaged:
        raise CheckFailed(
            *(
                Problem(
                    f"{v.state}: {v.entry.filename} {v.entry.software}".rstrip(),
                    str(v.path),
                    todo="mvstack sources verify --remove-damaged, then fetch it again",
                )
                for v in bad
            ),
            outcome="Nothing was removed.",
        )


@app.command(
    epilog="Examples: mvstack sources fetch   ·   mvstack sources fetch hpcc@1.5.0 mpich   ·   "
    "mvstack sources fetch local   ·   mvstack sources fetch --mirror /mnt/mirror mvapich@4.0"
)
def fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SYSTEM|NAME@VERSION]...",
            help="What a system's plan needs, a version, or all versions of NAME; "
            "everything that has a recipe if nothing is named.",
            autocompletion=_complete,
        ),
    ] = None,
    root: Root = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option("--mirror", help="A folder or URL to ask first; also MVSTACK_MIRRORS."),
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask hosts again that did not answer lately.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring sources into the mirror; what cannot be had is said, and the rest is brought."""
    from mvstack.sources.accepted import state_dir
    from mvstack.sources.fetch import Fetcher, site_mirrors
    from mvstack.support.progress import Progress

    specs = _specs(names or [], root)
    progress = Progress(len(specs), mode="quiet" if as_json else "auto")
    fetcher = Fetcher(_store(root), site_mirrors(mirror or []), state_dir())
    if retry:
        fetcher.hosts.forget()
    rows: list[dict[str, Any]] = []
    failed: list[MvstackError] = []
    for spec in specs:
        try:
            with progress.step("fetch", f"{spec.name} {spec.filename}") as step:
                fetcher.on_progress = _noting(step)
                fetched = fetcher.fetch(spec)
                fetcher.link_easybuild(spec, fetched)
        except SourceError as error:
            failed.append(error)
        else:
            rows.append({"source": spec.name, **fetched.as_dict()})
            for why in fetched.passed_over:
                typer.echo(f"  passed over: {why}", err=True)
    problem = _all_of(failed, f"{len(rows)} of {len(specs)} sources are in the mirror.")
    if as_json:
        _emit({"sources": rows, **(problem.as_dict() if problem else {"problems": []})})
        raise typer.Exit(problem.exit_code if problem else 0)  # one JSON document, not two
    _show_fetched(rows)
    if problem:
        raise problem


def _noting(step: Step) -> Any:
    def note(_: str, done: int, total: int) -> None:
        step.note(f"{_size(done)} of {_size(total)}" if total else _size(done))

    return note


def _all_of(errors: Iterable[MvstackError], outcome: str) -> SourceError | None:
    problems = [problem for error in errors for problem in error.problems]
    return SourceError(*problems, outcome=outcome) if problems else None


def _show_fetched(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    table = _table("source", "file", "sha256", "from", "bytes")
    for row in rows:
        whose = row["note"] or ("upstream's" if row["upstream"] else "not upstream's")
        table.add_row(row["source"], row["file"], row["sha256"][:16], row["place"], whose)
    _show(table)


@app.command(
    epilog="Examples: mvstack sources add mvapich-4.0.tar.gz --as mvapich@4.0   ·   "
    "mvstack sources add my.tar.gz --as mvapich@4.0 --accept-hash SHA256 "
    "--reason 'site patch 12'"
)
def add(
    file: Annotated[Path, typer.Argument(help="The file to put into the mirror.")],
    name: Annotated[
        str,
        typer.Option("--as", help="What it is, e.g. mvapich@4.0.", autocompletion=_complete),
    ],
    accept_hash: Annotated[
        str | None, typer.Option(help="SHA-256 of bytes that are wanted though not upstream's.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why these bytes; shown to users.")] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Put a file into the mirror: upstream's bytes, or others on purpose."""
    from mvstack.sources.adding import add_source, meant
    from mvstack.sources.spec import named

    spec = meant(named(_all_specs(), name), file)
    row = add_source(_store(root), spec, file, accept_hash, reason)
    if as_json:
        _emit(row)
        return
    typer.echo(f"{row['source']}: {row['file']} is in the mirror, sha256 {row['sha256']}")
    if row["note"]:
        typer.echo(row["note"])


@app.command(epilog="Example: mvstack sources forget mvapich@4.0")
def forget(
    name: Annotated[str, typer.Argument(metavar="NAME@VERSION", autocompletion=_complete)],
    as_json: Json = False,
) -> None:
    """Take back what `add --accept-hash` accepted; the file stays in the mirror."""
    from mvstack.sources import accepted
    from mvstack.sources.spec import named

    gone = [
        one
        for spec in named(_all_specs(), name)
        for one in accepted.forget(spec.software, spec.version, spec.filename)
    ]
    if as_json:
        _emit([one.model_dump() for one in gone])
        return
    for one in gone:
        typer.echo(f"{one.software} {one.version}: {one.sha256} is no longer accepted")
    if not gone:
        typer.echo(f"nothing was accepted for {name}")
