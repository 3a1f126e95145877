"""The command line. It alone knows all the steps; each command is a few calls of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from mvstack import __version__
from mvstack.cli.abi import abi
from mvstack.cli.bundle import bundle
from mvstack.cli.cache import app as cache_app
from mvstack.cli.ci import app as ci_app
from mvstack.cli.diff import diff
from mvstack.cli.ending import run
from mvstack.cli.image import app as image_app
from mvstack.cli.list import listing
from mvstack.cli.lock import lock
from mvstack.cli.new import app as new_app
from mvstack.cli.sources import app as sources_app
from mvstack.install import stages
from mvstack.model.load import load_policy, load_release, release_names, system_names
from mvstack.sources.spec import known_sources
from mvstack.support.console import emit, emit_or_say
from mvstack.support.errors import InvalidInput, MvstackError, Problem, together
from mvstack.support.home import VARIABLE, use

app = typer.Typer(
    name="mvstack",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="One description of a machine → the right MVAPICH, built, loaded, checked and reported.",
    epilog="Exit codes: 0 done · 1 a check failed · 2 wrong usage · 3 invalid input · 4 refused · "
    "5 a source · 6 a build · 7 something missing on this machine · 8 locked · 9 (diff) something "
    "would be rebuilt · 130 interrupted (the same command goes on).",
)
app.add_typer(sources_app, name="sources")
app.add_typer(cache_app, name="cache")
app.add_typer(image_app, name="image")
app.add_typer(ci_app, name="ci")
app.add_typer(new_app, name="new")
app.command("list", epilog="Examples: mvstack list   ·   mvstack list packages --json")(listing)
app.command(epilog="Example: mvstack bundle local --sources --to /mnt/stick/local")(bundle)
app.command(epilog="Examples: mvstack lock   ·   mvstack lock expanse/cpu --to locks")(lock)
app.command(epilog="Examples: mvstack diff HEAD~1   ·   mvstack diff origin/main expanse --json")(
    diff
)
app.command(epilog="Example: mvstack abi /apps/mpich-4.0.2 /apps/mvapich-3.0 ./program")(abi)


def _systems(incomplete: str) -> list[str]:
    return [name for name in system_names() if name.startswith(incomplete)]


System = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM[/PARTITION]|FILE",
        help="A system of environments/systems, one of its partitions, or a system file.",
        autocompletion=_systems,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Root = Annotated[
    Path | None,
    typer.Option("--root", help="Install root (else MVSTACK_ROOT, the system's, the default)."),
]
ReleaseName = Annotated[str | None, typer.Option("--release", help="A release; else the newest.")]
Profile = Annotated[
    Literal["default", "small", "full"] | None,
    typer.Option(
        help="How much: the MPI and what proves it; that and FFTW, hypre and mpi4py; all libraries "
        "and applications. Else what the partition's file says, or what is installed."
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compile in parallel.")]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        envvar="MVSTACK_YES",
        help="As root: install what is missing from the distribution, unasked.",
    ),
]
out = Console(highlight=False, soft_wrap=False)


def _progress(as_json: bool, total: int = 0) -> Any:
    # start-up time: only this command needs it
    from mvstack.support.progress import Progress

    return Progress(total, mode="quiet" if as_json else "auto")


@app.command(epilog="Examples: mvstack discover > mine.yaml   ·   mvstack discover --json")
def discover(
    root: Annotated[
        Path,
        typer.Option(
            metavar="FILE|FOLDER",
            help="Look at a capture, or at a folder as if it were /; no tool is run then.",
        ),
    ] = Path("/"),
    name: Annotated[str, typer.Option(help="Name of the system in the file.")] = "local",
    as_json: Json = False,
    capture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all that is looked at to this file, for a bug report."
        ),
    ] = None,
    builder: Annotated[
        Literal["easybuild", "spack"], typer.Option(help="The builder that the file names.")
    ] = "easybuild",
) -> None:
    """Look at this machine and print a system file that a person can edit."""
    # start-up time: only this command needs it
    from mvstack import discover as looking
    from mvstack.discover.system import NAME as SYSTEM_NAME

    if capture is not None:
        if root != Path("/"):
            raise InvalidInput(
                Problem(
                    "a capture is made of this machine, not of another",
                    "--capture with --root",
                    todo="leave one of them out",
                )
            )
        looking.capture(capture)
        if as_json:
            emit({"capture": str(capture)})
        else:
            text = f"wrote {capture}: `mvstack discover --root {capture}` looks at it"
            typer.echo(text, err=True)
        return
    if not root.exists():
        raise InvalidInput(Problem("there is no such file or folder", str(root)))
    if not SYSTEM_NAME.fullmatch(name):
        raise InvalidInput(
            Problem(
                "this cannot be the name of a system",
                "--name",
                found=name,
                allowed="up to 40 small letters, digits and . _ -, beginning with a letter",
            )
        )
    machine = looking.look(root)
    if as_json:
        emit(machine.model_dump(mode="json"))
    else:
        typer.echo(looking.system_yaml(machine, name, builder=builder), nl=False)
        for note in machine.notes:
            typer.echo(f"note: {note}", err=True)


@app.command(epilog="Examples: mvstack check   ·   mvstack check mine.yaml expanse")
def check(
    systems: Annotated[
        list[str] | None, typer.Argument(help="Systems or files; all of the repository if none.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check system, release and policy files, and recipes; every error with its file and line."""
    # start-up time: only `check` reads all of this
    from mvstack.builders.base import builder_of
    from mvstack.model.gates import load_gates
    from mvstack.plan.make import make_plan
    from mvstack.plan.offers import doubts, system_doubts
    from mvstack.plan.types import Given
    from mvstack.recipes.checks import check_recipes
    from mvstack.recipes.wanted import check_rows

    errors: list[MvstackError] = []
    warnings: list[Problem] = []
    checked: list[str] = []
    policy = load_policy()
    known_sources()
    load_gates()
    releases = [load_release(name) for name in release_names()]
    for name in systems or system_names():
        try:
            system, partitions = stages.load(name)
            for partition in partitions:
                fallback = Given(fallback=system.discover)
                for release in releases:
                    make_plan(system, partition, release, policy, fallback)
                warnings += doubts(system, partition, policy)
                warnings += builder_of(system.builder).doubts(system, partition)
                checked.append(f"{system.name}/{partition}")
            warnings += system_doubts(system)
        except MvstackError as error:
            errors.append(error)
    recipes: list[str] = []
    if not systems:
        try:
            recipes = [recipe.name for recipe in check_recipes()]
            check_rows(releases, policy)
        except MvstackError as error:
            errors.append(error)
    for line in [line for one in warnings if not as_json for line in one.lines()]:
        typer.echo(line if line.startswith(" ") else f"warning: {line}", err=True)
    if errors:
        raise together(errors)
    if as_json:
        names = [release.name for release in releases]
        emit(
            {
                "checked": checked,
                "releases": names,
                "recipes": recipes,
                "warnings": [one.as_dict() for one in warnings],
            }
        )
    else:
        more = f", {len(recipes)} Spack recipes" if recipes else ""
        typer.echo(
            f"{len(checked)} partitions, {len(releases)} releases{more} and the policy are right"
        )


@app.command(epilog="Examples: mvstack explain expanse/cpu   ·   mvstack explain mine.yaml --json")
def explain(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Say which MPI build a partition gets, and why, with the source of each reason."""
    # start-up time: only this command needs it
    from mvstack.cli.explain import show_plan

    found, partitions = stages.load(system)
    plans = [
        stages.plan_for(found, name, release, root, profile=profile or "") for name in partitions
    ]
    if as_json:
        data = [plan.as_dict() for plan in plans]
        emit(data[0] if len(data) == 1 else data)
        return
    for number, plan in enumerate(plans):
        if number:
            out.print()
        show_plan(plan, found, out)


@app.command(
    epilog="Examples: mvstack render   ·   mvstack render --check   ·   "
    "mvstack render mine.yaml --to folder"
)
def render(
    systems: Annotated[
        list[str] | None, typer.Argument(help="Systems or files; all but `local` if none.")
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if what is committed is stale.")
    ] = False,
    to: Annotated[
        Path | None, typer.Option(help="Write below this folder, not environments/rendered.")
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Write the files that builders, modules and checks read, for every system."""
    # start-up time: only this command needs it
    from mvstack.cli.rendering import render_systems

    if profile and to is None:
        raise InvalidInput(
            Problem(
                "what is committed is rendered as the partitions' files say",
                "--profile without --to",
                todo="name a folder with --to, or write `profile:` into the partition's file",
            )
        )
    done = render_systems(systems or [], to, check_only, profile or "")
    if as_json:
        emit(done)
    elif check_only:
        typer.echo(f"{len(done)} partitions are rendered as their inputs say")
    else:
        for folder, count in done.items():
            typer.echo(f"{folder}: {count} files")


@app.command(
    epilog="Examples: mvstack install local --yes   ·   mvstack install local --profile full"
)
def install(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    jobs: Jobs = None,
    yes: Yes = False,
    anyway: Annotated[
        bool, typer.Option(help="Install though this machine is not of that partition.")
    ] = False,
    prerequisites: Annotated[
        bool, typer.Option(help="Check for the distribution's packages first.")
    ] = True,
    dry_run: Annotated[bool, typer.Option(help="Say what would be built; change nothing.")] = False,
    keep_going: Annotated[
        bool,
        typer.Option("--keep-going", "-k", help="A failed build ends only what stands on it."),
    ] = False,
    profile: Profile = None,
    cache: Annotated[
        list[str] | None,
        typer.Option("--cache", help="A binary cache to ask first; also MVSTACK_CACHES."),
    ] = None,
    cache_only: Annotated[
        bool, typer.Option("--cache-only", help="Take all of it from caches; build nothing.")
    ] = False,
    build_refused: Annotated[
        bool, typer.Option("--build-refused", help="Build what a cache has but must not be used.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build and install a partition's MPI and packages; goes on where it was interrupted."""
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
    )
    shown = _progress(as_json)
    emit_or_say(flow.pending(request) if dry_run else flow.install(request, shown), as_json)


@app.command(epilog="Examples: mvstack test   ·   mvstack test local --tag smoke")
def test(
    system: System = "local",
    tag: Annotated[list[str] | None, typer.Option(help="Only checks with this tag.")] = None,
    release: ReleaseName = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Run the checks on what is installed: right MPI, right world size, right values, speed."""
    # start-up time, as for install
    from mvstack.cli.up import test_system
    from mvstack.test.installed import failed_checks

    results = test_system(system, tag or [], release, root, _progress(as_json))
    if as_json:
        emit(results)
    else:
        count = sum(case["result"] == "pass" for case in results["cases"])
        typer.echo(
            f"{count} of {len(results['cases'])} checks passed, "
            f"{len(results['skipped'])} skipped, in {results['seconds']:.0f} s"
        )
    failed = failed_checks(results)
    if failed and as_json:  # the one document says it already
        raise typer.Exit(failed.exit_code)
    if failed:
        raise failed


@app.command(epilog="Examples: mvstack report   ·   mvstack report local --html report.html")
def report(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    html: Annotated[Path | None, typer.Option(help="Where the HTML page goes.")] = None,
    as_json: Json = False,
) -> None:
    """Show what was chosen, built and run, in the terminal and as one HTML page."""
    # start-up time, as for install
    from mvstack.cli.up import report_tree

    tree, _ = stages.installed_here(system, release, root, "report")
    report_tree(tree, html, as_json, out)


@app.command(epilog="Examples: mvstack up   ·   mvstack up local --yes")
def up(
    system: System = "local",
    release: ReleaseName = None,
    root: Root = None,
    jobs: Jobs = None,
    yes: Yes = False,
    prerequisites: Annotated[
        bool, typer.Option(help="Check for the distribution's packages first.")
    ] = True,
    profile: Profile = None,
) -> None:
    """Do it all: discover, explain, install, test, report. The same command goes on or repeats."""
    # start-up time, as for install
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
    )
    failed = bring_up(request, _progress(False, 0), out)
    if failed:
        raise failed


@app.callback(invoke_without_command=True)
def _first(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    site: Annotated[
        Path | None,
        typer.Option(
            envvar=VARIABLE,
            metavar="DIR",
            help="Your site's own folder of systems, policy, releases and recipes (docs/site.md).",
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
