"""``mvstack install``, ``test``, ``report``, and ``up``, which joins them."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Option

from mvstack.builders.base import builder_of
from mvstack.cache.use import site_caches
from mvstack.cli import options
from mvstack.cli.explain import show_plan
from mvstack.install import flow
from mvstack.install.stages import installed_here
from mvstack.report.page import write_html
from mvstack.report.summary import as_json as to_json
from mvstack.report.summary import gather
from mvstack.report.terminal import print_report
from mvstack.support.console import say
from mvstack.support.errors import CheckFailed, InvalidInput, MvstackError
from mvstack.support.home import own_tool
from mvstack.test.run import failed_checks, run_tests

app = options.commands()


@app.command(epilog="Examples: mvstack install --profile full   ·   mvstack install local lammps")
def install(
    system: options.System = "local",
    packages: options.Packages = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    jobs: options.Jobs = None,
    yes: options.Yes = False,
    anyway: Annotated[
        bool, Option(help="Install even if this machine does not match the partition.")
    ] = False,
    prerequisites: options.Prerequisites = True,
    dry_run: Annotated[bool, Option(help="Show what would be built; change nothing.")] = False,
    keep_going: options.KeepGoing = False,
    profile: options.Profile = None,
    cache: options.Caches = None,
    cache_only: Annotated[
        bool, Option("--cache-only", help="Install from caches only; build nothing.")
    ] = False,
    build_refused: Annotated[
        bool, Option("--build-refused", help="Build packages whose cached binary is refused.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Build and install a partition's MPI and packages. Run again after an interruption."""
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
    rows = flow.pending(request) if dry_run else flow.install(request, options.progress(as_json))
    nothing = "everything is installed already; nothing was built"
    say(rows, as_json, *(map(_line, rows) if rows else [nothing]))


def _line(row: dict[str, Any]) -> str:
    """What became of a package: ``cached: HPCC 1.5.0 hpcc/1.5.0``; or what would."""
    cached = row["result"] == "built" and row.get("from") == "binary cache"
    how = "cached" if cached else row["result"]
    said = f"{how}: {row['package']} {row['version']} {row.get('module', '')}".rstrip()
    return f"{said}, {row['takes']}" if "takes" in row else said


@app.command(epilog="Examples: mvstack test   ·   mvstack test local --tag smoke --history")
def test(
    system: options.System = "local",
    tag: options.Tags = None,
    history: Annotated[
        bool, Option("--history", help="Fail where a figure is worse than in all earlier runs.")
    ] = False,
    record: Annotated[
        bool, Option("--record", help="Show reference rows of the figures; write them to --site.")
    ] = False,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Run the checks on what is installed: right MPI, right world size, right values, speed."""
    recorder = own_tool("record", "mvstack test --record") if record else None
    _, plan = installed_here(system, release, root, "test")
    results = run_tests(plan, tag or [], options.progress(as_json))
    worse = [f"slower: {row['what']}: {row['why']}" for row in results["slower"]]
    failed = failed_checks(results, history)
    said = recorder(plan, results) if recorder and not failed else []
    data = {**results, "recorded": said} if recorder else results
    say(data, as_json, options.passed(results), *worse, *said, failed=failed)


@app.command(epilog="Examples: mvstack report   ·   mvstack report local --html report.html")
def report(
    system: options.System = "local",
    release: options.ReleaseName = None,
    root: options.Root = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="HTML file to write; else in the tree.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what was chosen, built and run, in the terminal and as one HTML page."""
    tree, _ = installed_here(system, release, root, "report")
    report_tree(tree, html, as_json)


@app.command(epilog="Examples: mvstack up   ·   mvstack up local --yes")
def up(
    system: options.System = "local",
    release: options.ReleaseName = None,
    root: options.Root = None,
    jobs: options.Jobs = None,
    yes: options.Yes = False,
    prerequisites: options.Prerequisites = True,
    keep_going: options.KeepGoing = False,
    profile: options.Profile = None,
    cache: options.Caches = None,
    as_json: options.Json = False,
) -> None:
    """Do it all: discover, explain, install, test, report. Run again after an interruption."""
    request = flow.Request(
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
    shown = options.progress(as_json)

    def step(name: str, what: str) -> AbstractContextManager[object]:
        if name == "discover":  # until the plan is known; its nodes come on top
            shown.total = shown.number + 4
        return shown.step(name, what)

    found, plan = flow.plan(request, "up", shown, step)
    shown.total += builder_of(plan.builder).steps(plan)
    if not as_json:
        show_plan(plan, found, Console(highlight=False))
    rows = flow.carry_out(found, plan, request, shown)
    tree = Path(plan.tree)
    counts = gather(tree).counts
    again = "smoke" if counts["fail"] + counts["missing"] else "quick"  # is it still as planned?
    failed: MvstackError | None
    try:
        tags = [again] if counts["pass"] and not rows else []
        failed = failed_checks(run_tests(plan.as_dict(), tags, shown))
    except CheckFailed as error:
        failed = error
    report_tree(tree, tree / "report.html", as_json, failed)


def report_tree(
    tree: Path, html: Path | None, as_json: bool, failed: MvstackError | None = None
) -> None:
    """Print the terminal's table and write the HTML page, or print JSON; end with ``failed``."""
    data = gather(tree)
    page = write_html(data, html) if html else None
    if not html and not as_json:
        try:
            page = write_html(data, tree / "report.html")
        except InvalidInput as error:  # of someone else's tree: the terminal's table is there
            failed = failed or error
    if not as_json:
        print_report(data, Console(highlight=False), page)
    say(to_json(data) if as_json else None, as_json, failed=failed)
