"""``mvstack diff``: what a change rebuilds."""

from typing import Annotated

import typer
from typer import Argument

from mvstack.cli import options
from mvstack.diff.compare import as_data, as_text, compare
from mvstack.diff.sides import both, sides
from mvstack.support.console import say
from mvstack.support.home import checkout

app = options.commands()

CHANGES = 9
"""Exit code when something would be rebuilt."""


@app.command(epilog="Examples: mvstack diff HEAD~1   ·   mvstack diff origin/main expanse --json")
def diff(
    revision: Annotated[
        str, Argument(metavar="REVISION", help="Commit, tag or branch to compare with.")
    ],
    systems: options.Named = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Show what changes since a git revision rebuild, on which system, and why.

    Exit code 9: something is rebuilt; 0: nothing is.
    """
    here = checkout("mvstack diff")
    with sides(here, revision, systems or [], profile or "") as (old, new):
        differences = compare(*both(old, new))
    say(as_data(old.name, differences), as_json, as_text(old.name, differences))
    if any(one.changes for one in differences):
        raise typer.Exit(CHANGES)
