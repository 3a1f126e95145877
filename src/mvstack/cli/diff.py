"""``mvstack diff``: what a change rebuilds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

CHANGES = 9
"""Exit code when something would be rebuilt."""


def diff(
    revision: Annotated[str, typer.Argument(help="What to compare with: a commit, tag or branch.")],
    systems: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SYSTEM[/PARTITION]]...", help="All but `local` if none."),
    ] = None,
    old_locks: Annotated[
        Path | None,
        typer.Option(help="Lock files of the revision: <system>/<partition>/spack.lock."),
    ] = None,
    new_locks: Annotated[
        Path | None, typer.Option(help="Those of the working tree, e.g. of `mvstack lock --to`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say what is rebuilt where, between a git revision and the working tree, and why.

    Exit code 0: nothing is rebuilt; 9: something is; others as everywhere.
    """
    # start-up time: only this command needs it
    from mvstack.diff.compare import compare
    from mvstack.diff.graphs import both
    from mvstack.diff.sides import sides
    from mvstack.diff.words import as_data, as_text
    from mvstack.support.home import checkout

    with sides(checkout("mvstack diff"), revision, systems or []) as (old, new):
        differences = compare(*both(old, new, old_locks, new_locks))
    if as_json:
        typer.echo(json.dumps(as_data(old.name, differences), indent=2))
    else:
        typer.echo(as_text(old.name, differences))
    if any(one.changes for one in differences):
        raise typer.Exit(CHANGES)
