"""``mvstack render``: render all systems, or check that the committed files are fresh."""

import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from mvstack.cli import options
from mvstack.image.plan import make_image
from mvstack.image.policy import image_policy
from mvstack.image.render import image_files
from mvstack.install import stages
from mvstack.install.local import over_better
from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.plan.make import make_plan, split_name
from mvstack.plan.types import Given
from mvstack.render.partition import RENDERED, stale, write
from mvstack.render.partition import render as files_of
from mvstack.support.console import say
from mvstack.support.errors import (
    CheckFailed,
    InvalidInput,
    MvstackError,
    Problem,
    gathered,
    relative,
    together,
)
from mvstack.support.files import write_atomically
from mvstack.support.home import checkout, home, own_tool

app = options.commands()


@app.command(
    epilog="Examples: mvstack render   ·   mvstack render --check   ·   "
    "mvstack render mine.yaml --to folder"
)
def render(
    systems: options.Systems = None,
    check_only: Annotated[
        bool, Option("--check", help="Change nothing; fail if a file is stale.")
    ] = False,
    to: Annotated[
        Path | None, Option(metavar="DIR", help="Folder to write to; else environments/rendered.")
    ] = None,
    profile: options.Profile = None,
    release: options.ReleaseName = None,
    as_json: options.Json = False,
) -> None:
    """Write the files that builders, modules and checks read."""
    if (profile or release) and to is None:
        what = "environments/rendered is of the newest release and the system files' profiles"
        where = "--profile or --release without --to"
        raise InvalidInput(what, where, todo="name a folder with --to")
    done = render_systems(systems or [], to, check_only, profile or "", release)
    rows = [f"{folder}: {count} files" for folder, count in done.items()]
    say(done, as_json, *([f"{len(done)} partitions are up to date"] if check_only else rows))


def render_systems(
    names: list[str], to: Path | None, check: bool, profile: str = "", of: str | None = None
) -> dict[str, int]:
    """Render ``names`` below ``to``; folder → number of files.

    Without names these are the systems of the repository that have a folder below
    environments/rendered; with ``to``, all that anything is offered on but `local`.

    ``profile`` is how much of the release ``of``, else as the partitions say. With ``check``
    nothing is written. Without ``to`` it is environments/rendered, for our own systems. Raises
    CheckFailed naming every file that is not fresh, and InvalidInput or Refused with all
    problems of all systems, before anything is written.
    """
    if to is None:
        if site := home().site:
            what = "with a site, --to is needed: environments/rendered is of this repository alone"
            raise InvalidInput(what, str(site), todo="mvstack render … --to DIR")
        _ours_only([name for name in names if split_name(name)[0] not in system_names()])
    base = to or checkout("mvstack render without --to") / RENDERED
    if base.exists() and not base.is_dir():
        todo = "give --to a folder; what is not there is made"
        raise InvalidInput("this is a file, not a folder", str(base), todo=todo)
    release, policy = load_release(of), load_policy()
    rendered: dict[Path, dict[str, str]] = {}
    errors: list[MvstackError] = []
    there = release.systems or [one for one in system_names() if one != "local"]
    kept = [name for name in there if to or (base / name).is_dir()]
    for name in names or kept:
        with gathered(errors):
            if not names and not load_system(name).partitions:
                continue  # nothing is offered there, and the file says why
            system, parts = stages.load(name, release.name)
            for part in parts:
                given = Given(profile=profile, fallback=system.discover)
                if system.discover:
                    system = over_better(system, part, release)
                plan = make_plan(system, part, release, policy, given)
                files = files_of(plan)
                if system.partitions[part].image is not None:
                    files |= image_files(plan, make_image(system, plan, image_policy()))
                rendered[base / system.name / part] = files
    if errors:
        raise together(errors, "Nothing was rendered.")
    tables = {} if names or to else _changed()
    if check:
        todo = (
            f"the same command without --check writes {to}"
            if to
            else "mvstack render, and commit it"
        )
        _fresh(rendered, base, tables, not names, todo)
    else:
        for folder, files in rendered.items():
            write(files, folder)
        for path, text in tables.items():
            write_atomically(path, text, mode=None)
    return {relative(folder): len(files) for folder, files in rendered.items()}


def _changed() -> dict[Path, str]:
    """What the repository derives for itself and has otherwise: docs pages, schemas, tables."""
    made: dict[Path, str] = own_tool("derived")()
    is_fresh = {path: path.is_file() and path.read_text() == made[path] for path in made}
    return {path: text for path, text in made.items() if not is_fresh[path]}


def _ours_only(names: list[str]) -> None:
    """Raise InvalidInput for system files without errors: they need a folder of their own."""
    problems = []
    for name in names:
        with contextlib.suppress(MvstackError):  # told with the others' errors
            load_system(split_name(name)[0])
            what = "environments/rendered is for the systems of this repository only"
            problems.append(Problem(what, name, todo=f"mvstack render {name} --to DIR"))
    if problems:
        raise InvalidInput(*problems, outcome="Nothing was rendered.")


def _fresh(
    rendered: dict[Path, dict[str, str]],
    base: Path,
    tables: Iterable[Path],
    everything: bool,
    todo: str,
) -> None:
    problems = [
        Problem(f"stale: {what}", relative(folder))
        for folder, files in rendered.items()
        for what in stale(files, folder)
    ]
    problems += [Problem("stale: not what its inputs give now", relative(path)) for path in tables]
    if everything and base.is_dir():
        there = {path.parent for path in base.glob("*/*/plan.json")}
        problems += [
            Problem("no system of this repository renders this any more", relative(folder))
            for folder in sorted(there - set(rendered))
        ]
    if problems:
        problems[-1] = replace(problems[-1], todo=todo)
        raise CheckFailed(*problems)
