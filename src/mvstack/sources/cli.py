"""``mvstack sources``: look after the source mirror."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mvstack.errors import CheckFailed, InvalidInput, Problem, SourceError, relative

app = typer.Typer(
    no_args_is_help=True, help="The source mirror: what is there, bring it, check it, add to it."
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Root = Annotated[Path | None, typer.Option("--root", help="Install root whose mirror is meant.")]


def _store(root: Path | None) -> Any:
    from mvstack.sources.store import Store
    from mvstack.stages import default_root

    return Store(Path(root.absolute() if root else default_root()) / "sources")


def _all_specs() -> list[Any]:
    from mvstack.easyconfigs import index
    from mvstack.sources.spec import specs_from_easyconfigs

    return specs_from_easyconfigs(index().values())


def _named(name: str) -> list[Any]:
    """The specs called ``name`` (mvapich@4.0), whatever the case."""
    from mvstack.model.words import listed, nearest

    specs = _all_specs()
    found = [spec for spec in specs if spec.name == name.strip().lower()]
    if not found:
        known = sorted({spec.name for spec in specs})
        close = nearest(name, known)
        raise InvalidInput(
            Problem(
                f"no recipe is called {name}" + (f"; did you mean {close}?" if close else ""),
                found=name,
                allowed=listed(known),
                nearest=close,
            )
        )
    return found


def _emit(rows: list[dict[str, Any]]) -> None:
    typer.echo(json.dumps(rows, indent=2))


@app.command("list", epilog="Example: mvstack sources list --json")
def list_(root: Root = None, as_json: Json = False) -> None:
    """Say what the mirror holds."""
    store = _store(root)
    rows = [asdict(entry) for entry in store.entries()]
    if as_json:
        _emit(rows)
        return
    if not rows:
        typer.echo(f"{store.root} holds nothing yet; `mvstack sources fetch` brings sources")
    for row in rows:
        typer.echo(
            f"{row['software']:<24} {row['size'] / 1e6:8.1f} MB  {row['sha256'][:12]}  "
            f"{row['filename']}  from {row['place']}"
        )


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
    """Hash every file of the mirror again."""
    store = _store(root)
    verdicts = store.verify()
    bad = [verdict for verdict in verdicts if verdict.state != "good"]
    if remove_damaged:
        for verdict in bad:
            store.remove(verdict.entry)
    if as_json:
        _emit([{"state": v.state, "path": str(v.path), **asdict(v.entry)} for v in verdicts])
    else:
        typer.echo(f"{len(verdicts) - len(bad)} of {len(verdicts)} files are what their hash says")
    if bad and not remove_damaged:
        raise CheckFailed(
            *(
                Problem(
                    f"{v.state}: {v.entry.filename} of {v.entry.software}",
                    str(v.path),
                    todo="mvstack sources verify --remove-damaged, then fetch it again",
                )
                for v in bad
            )
        )
    for verdict in bad:
        typer.echo(f"removed: {verdict.entry.filename} ({verdict.state})", err=as_json)


@app.command(epilog="Examples: mvstack sources fetch   ·   mvstack sources fetch hpcc@1.5.0")
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="NAME@VERSION; all that have a recipe if none.")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Bring sources into the mirror; what cannot be had is said, the rest is brought."""
    from mvstack.progress import Progress
    from mvstack.sources.accepted import state_dir
    from mvstack.sources.fetch import Fetcher, site_mirrors

    specs = [spec for name in names for spec in _named(name)] if names else _all_specs()
    progress = Progress(len(specs), mode="quiet" if as_json else "auto")
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    fetcher = Fetcher(_store(root), site_mirrors(), state_dir())
    for spec in specs:
        try:
            with progress.step("fetch", f"{spec.name} {spec.filename}") as step:
                fetcher.on_progress = lambda _, done, size, step=step: step.note(
                    f"{done / 1e6:.1f} of {size / 1e6:.1f} MB" if size else f"{done / 1e6:.1f} MB"
                )
                fetched = fetcher.fetch(spec)
                fetcher.link_easybuild(spec, fetched)
                rows.append({"source": spec.name, **fetched.as_dict()})
        except SourceError as error:
            problems += error.problems
    if as_json:
        _emit(rows)
    else:
        for row in rows:
            typer.echo(
                f"{row['source']}: {row['file']} from {row['place']}"
                + (f" ({row['note']})" if row["note"] else "")
            )
    if problems:
        raise SourceError(*problems, outcome=f"{len(rows)} of {len(specs)} sources are there.")


@app.command(
    epilog="Examples: mvstack sources add mvapich-4.0.tar.gz --as mvapich@4.0   ·   "
    "mvstack sources add my.tar.gz --as mvapich@4.0 --accept-hash SHA256 "
    "--reason 'site patch 12'"
)
def add(
    file: Annotated[Path, typer.Argument(help="The file to put into the mirror.")],
    name: Annotated[str, typer.Option("--as", help="What it is, e.g. mvapich@4.0.")],
    accept_hash: Annotated[
        str | None, typer.Option(help="SHA-256 of bytes that are wanted though not upstream's.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why these bytes; shown to users.")] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Put a file into the mirror: upstream's bytes, or others on purpose."""
    from mvstack.sources.adding import add_source

    spec = _named(name)[0]
    if not file.is_file():
        raise InvalidInput(Problem("there is no such file", relative(file)))
    row = add_source(_store(root), spec, file, accept_hash, reason)
    if as_json:
        _emit([row])
    else:
        typer.echo(
            f"{spec.name}: {row['file']} is in the mirror, sha256 {row['sha256']}"
            + (f"\nnot upstream's bytes: {reason}" if row["note"] else "")
        )
