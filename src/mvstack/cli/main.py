"""The command line. It alone knows all the steps; each command is a few calls of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from mvstack import __version__
from mvstack.cli.abi import abi
from mvstack.cli.bundle import bundle
from mvstack.cli.cache import app as cache_app
from mvstack.cli.checking import check
from mvstack.cli.ci import app as ci_app
from mvstack.cli.diff import diff
from mvstack.cli.ending import run
from mvstack.cli.image import app as image_app
from mvstack.cli.list import listing
from mvstack.cli.lock import lock
from mvstack.cli.new import app as new_app
from mvstack.cli.options import (
    Caches,
    Jobs,
    Json,
    KeepGoing,
    Packages,
    Prerequisites,
    Profile,
    ReleaseName,
    Root,
    System,
    Systems,
    Tags,
    Yes,
    progress,
    say_results,
)
from mvstack.cli.sources import app as sources_app
from mvstack.install import stages
from mvstack.plan.types import Extent
from mvstack.support.console import emit, emit_or_say, say
from mvstack.support.errors import InvalidInput
from mvstack.support.home import VARIABLE, use

app = typer.Typer(
    name="mvstack",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="One description of a machine → the right MVAPICH, built, loaded, checked and reported.",
    epilog="Exit codes: 0 done · 1 a check failed · 2 wrong usage · 3 invalid input · 4 refused · "
    "5 a source · 6 a build · 7 something missing on this machine · 8 locked · 9 (diff) something "
    "would be rebuilt · 130 interrupted (run the same command again).",
)
START, STACK, SOURCES = "Start", "Stack", "Sources and caches"
PIPELINES, WRITE = "Pipelines and images", "Write"
out = Console(highlight=False, soft_wrap=False)


@app.command(
    rich_help_panel=START,
    epilog="Examples: mvstack discover > mine.yaml   ·   mvstack discover --json",
)
def discover(
    root: Annotated[
        Path,
        typer.Option(
            metavar="FILE|FOLDER",
            help="Read a capture, or a folder as if it were /, and run no tool.",
        ),
    ] = Path("/"),
    name: Annotated[str, typer.Option(help="Name of the system.")] = "local",
    as_json: Json = False,
    capture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write everything that was read to this file, for a bug report."
        ),
    ] = None,
    builder: Annotated[
        Literal["easybuild", "spack"], typer.Option(help="Builder of the system.")
    ] = "easybuild",
) -> None:
    """Look at this machine and print a system file to edit."""
    # start-up time: only this command needs it
    from mvstack import discover as looking
    from mvstack.discover.system import NAME as SYSTEM_NAME

    if capture is not None:
        if root != Path("/"):
            raise InvalidInput(
                "only this machine can be captured",
                "--capture with --root",
                todo="leave one of them out",
            )
        looking.capture(capture)
        said = f"wrote {capture}; read it with: mvstack discover --root {capture}"
        say({"capture": str(capture)}, as_json, said)
        return
    if not root.exists():
        raise InvalidInput("no such file or folder", str(root))
    if not SYSTEM_NAME.fullmatch(name):
        raise InvalidInput(
            "not a valid system name",
            "--name",
            found=name,
            allowed="up to 40 small letters, digits and . _ -, beginning with a letter",
        )
    machine = looking.look(root)
    if as_json:
        emit(machine.model_dump(mode="json"))
    else:
        typer.echo(looking.system_yaml(machine, name, builder=builder), nl=False)
        for note in machine.notes:
            typer.echo(f"note: {note}", err=True)


@app.command(
    rich_help_panel=START,
    epilog="Examples: mvstack explain expanse/cpu   ·   mvstack explain mine.yaml --json   ·   "
    "mvstack discover | mvstack explain -",
)
def explain(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Show which MPI each partition gets, and why, with the source of each reason."""
    # start-up time: only this command needs it
    from mvstack.cli.explain import show_plan

    found, partitions = stages.load(system)
    extent = Extent(profile or "")
    plans = [stages.plan_for(found, name, release, root, extent=extent) for name in partitions]
    if as_json:
        emit({"plans": [plan.as_dict() for plan in plans]})
        return
    for number, plan in enumerate(plans):
        if number:
            out.print()
        show_plan(plan, found, out)


app.command(
    rich_help_panel=START,
    epilog="Examples: mvstack check   ·   mvstack check mine.yaml expanse   ·   "
    "mvstack discover | mvstack check -",
)(check)
app.command(
    "list",
    rich_help_panel=START,
    epilog="Examples: mvstack list   ·   mvstack list packages --json",
)(listing)


@app.command(
    rich_help_panel=STACK,
    epilog="Examples: mvstack install local --yes   ·   mvstack install local --profile full   ·   "
    "mvstack install local lammps gromacs",
)
def install(
    system: System = "local",
    packages: Packages = None,
    release: ReleaseName = None,
    root: Root = None,
    jobs: Jobs = None,
    yes: Yes = False,
    anyway: Annotated[
        bool, typer.Option(help="Install even if this machine does not match the partition.")
    ] = False,
    prerequisites: Prerequisites = True,
    dry_run: Annotated[
        bool, typer.Option(help="Show what would be built; change nothing.")
    ] = False,
    keep_going: KeepGoing = False,
    profile: Profile = None,
    cache: Caches = None,
    cache_only: Annotated[
        bool, typer.Option("--cache-only", help="Install from caches only; build nothing.")
    ] = False,
    build_refused: Annotated[
        bool, typer.Option("--build-refused", help="Build packages whose cached binary is refused.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build and install a partition's MPI and packages. Run again after an interruption."""
    # start-up time: what installs is read by the commands that install alone
    from mvstack.cache.use import site_caches
    from mvstack.install import flow

    request = flow.Request(
        system,
        release,
        root,
        profile or "",
        jobs=jobs,
        yes=yes,
        anyway=anyway,
        prerequisites=prerequisites,
        keep_going=keep_going,
        caches=site_caches(cache or [], cache_only, build_refused),
        packages=tuple(packages or ()),
    )
    shown = progress(as_json)
    emit_or_say(flow.pending(request) if dry_run else flow.install(request, shown), as_json)


@app.command(
    rich_help_panel=STACK, epilog="Examples: mvstack test   ·   mvstack test local --tag smoke"
)
def test(
    system: System = "local",
    tag: Tags = None,
    release: ReleaseName = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Run the checks on what is installed: right MPI, right world size, right values, speed."""
    # start-up time, as for install
    from mvstack.cli.up import test_system
    from mvstack.test.installed import failed_checks

    results = test_system(system, tag or [], release, root, progress(as_json))
    say_results(results, as_json)
    failed = failed_checks(results)
    if failed and as_json:  # the one document says it already
        raise typer.Exit(failed.exit_code)
    if failed:
        raise failed


@app.command(
    rich_help_panel=STACK,
    epilog="Examples: mvstack report   ·   mvstack report local --html report.html",
)
def report(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML file to write; else in the tree.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what was chosen, built and run, in the terminal and as one HTML page."""
    # start-up time, as for install
    from mvstack.cli.up import report_tree

    tree, _ = stages.installed_here(system, release, root, "report")
    report_tree(tree, html, as_json, out)


@app.command(rich_help_panel=STACK, epilog="Examples: mvstack up   ·   mvstack up local --yes")
def up(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    jobs: Jobs = None,
    yes: Yes = False,
    prerequisites: Prerequisites = True,
    keep_going: KeepGoing = False,
    profile: Profile = None,
    cache: Caches = None,
) -> None:
    """Do it all: discover, explain, install, test, report. Run again after an interruption."""
    # start-up time, as for install
    from mvstack.cache.use import site_caches
    from mvstack.cli.up import bring_up
    from mvstack.install.flow import Request

    request = Request(
        system,
        release,
        root,
        profile or "",
        jobs=jobs,
        yes=yes,
        prerequisites=prerequisites,
        keep_going=keep_going,
        caches=site_caches(cache or []),
    )
    if failed := bring_up(request, progress(False), out):
        raise failed


app.command(
    rich_help_panel=STACK,
    epilog="Example: mvstack abi /apps/mpich-4.0.2 /apps/mvapich-3.0 ./program",
)(abi)
app.command(
    rich_help_panel=SOURCES, epilog="Example: mvstack bundle local --sources --to /mnt/stick/local"
)(bundle)
app.add_typer(sources_app, name="sources", rich_help_panel=SOURCES)
app.add_typer(cache_app, name="cache", rich_help_panel=SOURCES)
app.command(
    rich_help_panel=PIPELINES,
    epilog="Examples: mvstack diff HEAD~1   ·   mvstack diff origin/main expanse --json",
)(diff)
app.add_typer(ci_app, name="ci", rich_help_panel=PIPELINES)
app.add_typer(image_app, name="image", rich_help_panel=PIPELINES)


@app.command(
    rich_help_panel=WRITE,
    epilog="Examples: mvstack render   ·   mvstack render --check   ·   "
    "mvstack render mine.yaml --to folder",
)
def render(
    systems: Systems = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if a file is stale.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder to write to; else environments/rendered."),
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Write the files that builders, modules and checks read."""
    # start-up time: only this command needs it
    from mvstack.cli.rendering import render_systems

    if profile and to is None:
        raise InvalidInput(
            "environments/rendered follows the profiles in the system files",
            "--profile without --to",
            todo="name a folder with --to, or write `profile:` into the partition's file",
        )
    done = render_systems(systems or [], to, check_only, profile or "")
    rows = [f"{folder}: {count} files" for folder, count in done.items()]
    say(done, as_json, *([f"{len(done)} partitions are up to date"] if check_only else rows))


app.command(
    rich_help_panel=WRITE, epilog="Examples: mvstack lock   ·   mvstack lock expanse/cpu --to locks"
)(lock)
app.add_typer(new_app, name="new", rich_help_panel=WRITE)


@app.callback(invoke_without_command=True)
def _first(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    site: Annotated[
        Path | None,
        typer.Option(
            envvar=VARIABLE,
            metavar="DIR",
            help="Folder of your site's systems, policy, releases and recipes (docs/site.md).",
        ),
    ] = None,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if site is not None:
        use(site)


def main() -> None:
    """Run a command and turn what went wrong into a message and an exit code."""
    run(app)
