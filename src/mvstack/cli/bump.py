"""`mvstack outdated` and `mvstack bump`: what is behind others, and a package's next version."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mvstack.builders.spack import clone
from mvstack.cli import options
from mvstack.cli.new import valid
from mvstack.install.stages import default_root
from mvstack.model.load import load_policy, load_release
from mvstack.model.spack import spack_pins
from mvstack.model.text import Version
from mvstack.sources.spec import SHA256
from mvstack.support.console import say, table
from mvstack.support.errors import BuildFailed, InvalidInput
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA, home, own_tool
from mvstack.support.processes import run

app = options.commands()


def _elsewhere(root: Path | None, command: str) -> Any:
    there = clone.home(Path(default_root(root)), spack_pins()) / "packages"
    return own_tool("Elsewhere", command)(there)


@app.command(epilog="Examples: mvstack outdated   ·   mvstack outdated gromacs lammps --json")
def outdated(
    packages: Annotated[
        list[str] | None,
        Argument(metavar="PACKAGE", help="Packages to show.", autocompletion=options.packages),
    ] = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """List what EasyBuild, Spack or upstream's tags have in a newer version."""
    there, compared = _elsewhere(root, "mvstack outdated"), own_tool("compared")
    rows, unseen = compared(load_release(), load_policy(), there, packages or [])
    shown = [x for x in rows if packages or x.behind]
    columns = ("package", "release", "builder", "EasyBuild", "Spack", "upstream", "why this one")
    lines = table(columns, [tuple(asdict(x).values()) for x in shown])
    behind = f"{sum(x.behind for x in rows)} of {len(rows)} are behind"
    data = {"rows": [{**asdict(x), "behind": x.behind} for x in shown], "not_seen": unseen}
    say(data, as_json, lines, behind, *(f"not seen: {one}" for one in unseen))


@app.command(
    epilog="Examples: mvstack bump GROMACS 2026.2 --dry-run   ·   "
    "mvstack bump hypre 3.1.0 --why 'PETSc 3.25 asks for it'"
)
def bump(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="Package of the release.", autocompletion=options.packages),
    ],
    version: Annotated[str, Argument(metavar="VERSION", help="Its new version.")],
    why: Annotated[str, Option(help="Why this version; replaces the row's reason.")] = "",
    sha256: Annotated[
        str, Option(metavar="HASH", help="SHA-256 of the source that you know from upstream.")
    ] = "",
    dry_run: Annotated[bool, Option("--dry-run", help="Show the diff and write nothing.")] = False,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Give a package of the newest release another version, with the hash of its source."""
    valid("VERSION", Version, version)
    if sha256 and not SHA256.fullmatch(sha256):
        todo = "`sha256sum FILE` prints it"
        raise InvalidInput("a SHA-256 has 64 hexadecimal digits", "--sha256", sha256, todo=todo)
    there = _elsewhere(root, "mvstack bump")
    made = own_tool("Bump")(load_release(), there, version, sha256, why)
    made.plan(name, home().site or DATA)
    diff = list(made.diff())
    for path, text in () if dry_run else made.files.items():
        if text is None:
            path.unlink()
        else:
            write_atomically(path, text, mode=None)
    if not (dry_run or home().site):  # by a process of its own: this one has read what was before
        done = run([sys.executable, "-P", "-m", "mvstack", "render"])
        if not done.ok:
            todo = "correct what it names, or take the change back with git"
            raise BuildFailed("it is written and cannot be rendered", found=done.said, todo=todo)
    next_ = f"next: mvstack check && mvstack sources fetch {name}@{version}"
    by_hand = [f"check by hand: {one}" for one in [*there.absent, *made.by_hand]]
    data = {"diff": diff, "said": made.said, "by_hand": by_hand, "written": not dry_run}
    say(data, as_json, *diff, *made.said, *by_hand, "Nothing was written." if dry_run else next_)
