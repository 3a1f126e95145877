"""Versions: what is behind others, and a package's next one."""

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from mvstack.builders.spack import clone
from mvstack.cli import options
from mvstack.cli.new import valid
from mvstack.install.stages import default_root
from mvstack.model.load import load_policy, load_release
from mvstack.model.spack import spack_pins
from mvstack.model.text import Version
from mvstack.recipes.bump import Asked, planned
from mvstack.recipes.elsewhere import Elsewhere, compared
from mvstack.sources.accepted import state_dir
from mvstack.sources.download import NotHere, SilentHosts, bring
from mvstack.sources.fetch import site_mirrors
from mvstack.sources.spec import SHA256, SourceSpec
from mvstack.support.console import say, table
from mvstack.support.errors import BuildFailed, InvalidInput, SourceError
from mvstack.support.files import sha256_of, write_atomically
from mvstack.support.home import home
from mvstack.support.processes import run
from mvstack.support.words import listed, nearest

app = options.commands()


def _elsewhere(root: Path | None) -> Elsewhere:
    return Elsewhere(clone.home(Path(default_root(root)), spack_pins()) / "packages")


@app.command(epilog="Examples: mvstack outdated   ·   mvstack outdated gromacs lammps --json")
def outdated(
    packages: options.Packages = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """List what EasyBuild, Spack or upstream's tags have in a newer version."""
    rows, unseen = compared(load_release(), load_policy(), _elsewhere(root))
    named = [one.lower() for one in packages or []]
    names = {row.name.lower(): row.name for row in rows}
    if lost := [one for one in named if one not in names]:
        close = listed(filter(None, (nearest(one, names) for one in lost)))
        what = f"the release has no package or MPI {listed(lost)}"
        raise InvalidInput(what, allowed=listed(names.values()), nearest=close)
    shown = [x for x in rows if x.name.lower() in named] or [x for x in rows if x.behind]
    columns = ("package", "release", "builder", "EasyBuild", "Spack", "upstream", "why this one")
    lines = table(columns, [tuple(asdict(x).values()) for x in shown])
    behind = f"{sum(x.behind for x in rows)} of {len(rows)} are behind"
    data = {"rows": [{**asdict(x), "behind": x.behind} for x in shown], "not_seen": unseen}
    say(data, as_json, lines, behind, *(f"not seen: {one}" for one in unseen))


@app.command(
    epilog="Examples: mvstack bump GROMACS 2025.3 --dry-run   ·   "
    "mvstack bump hypre 2.33.0 --why 'PETSc 3.23 asks for it'"
)
def bump(
    name: Annotated[
        str,
        Argument(metavar="NAME", help="Package of the release.", autocompletion=options.packages),
    ],
    version: Annotated[str, Argument(metavar="VERSION", help="Its new version.")],
    why: Annotated[str, Option("--why", help="Why this version; replaces the row's reason.")] = "",
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
    asked = Asked(name, version, _elsewhere(root), _downloaded, sha256, why)
    made = planned(asked)
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
    ends = (
        "Nothing was written."
        if dry_run
        else f"next: mvstack check && mvstack sources fetch {name}"
    )
    by_hand = [f"check by hand: {one}" for one in [*asked.there.absent, *made.by_hand]]
    data = {"diff": diff, "said": made.said, "by_hand": by_hand, "written": not dry_run}
    say(data, as_json, *diff, *made.said, *by_hand, ends)


def _downloaded(spec: SourceSpec) -> tuple[str, str]:
    """The SHA-256 of a source that no recipe knows, and from where. Raises SourceError."""
    hosts, tried = SilentHosts(state_dir()), []
    with tempfile.TemporaryDirectory(prefix="mvstack-bump-") as folder:
        file = Path(folder) / "file"
        for place in [*(f"{x.rstrip('/')}/{spec.filename}" for x in site_mirrors()), *spec.urls]:
            try:
                bring(place, file, hosts)
            except NotHere as why:
                tried.append(str(why))
            else:
                return sha256_of(file), place
    raise SourceError(
        f"nobody knows a hash of {spec.filename}, and it cannot be downloaded",
        found="; ".join(tried) or "its easyconfig names no place",
        todo="give the hash that upstream publishes with --sha256, or in MVSTACK_MIRRORS a mirror that "
        "has the file",
        outcome="Nothing was changed.",
    )
