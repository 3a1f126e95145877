"""``mvstack diff``: what a change rebuilds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mvstack.cli.options import Json, Profile, Systems
from mvstack.support.console import say

CHANGES = 9
"""Exit code when something would be rebuilt."""


def diff(
    revision: Annotated[
        str, typer.Argument(metavar="REVISION", help="Commit, tag or branch to compare with.")
    ],
    systems: Systems = None,
    old_locks: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Lock files of the revision: SYSTEM/PARTITION/spack.lock."
        ),
    ] = None,
    new_locks: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Lock files of the working tree (`mvstack lock --to`)."),
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Show what changes since a git revision rebuild, on which system, and why.

    Exit code 9: something is rebuilt; 0: nothing is.
    """
    # start-up time: only this command needs it
    from mvstack.diff.compare import as_data, as_text, compare
    from mvstack.diff.sides import both, sides
    from mvstack.support.home import checkout

    here = checkout("mvstack diff")
    with sides(here, revision, systems or [], profile or "") as (old, new):
        differences = compare(*both(old, new, old_locks, new_locks))
    say(as_data(old.name, differences), as_json, as_text(old.name, differences))
    if any(one.changes for one in differences):
        raise typer.Exit(CHANGES)
