"""Whole commands: install, test, report, and `up`, which does them all in one go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from mvstack.install import stages
from mvstack.install.prerequisites import Lacking
from mvstack.model.load import load_release, load_system
from mvstack.model.system import System
from mvstack.plan.make import split_name
from mvstack.plan.types import Plan
from mvstack.support.errors import CheckFailed, MvstackError
from mvstack.support.progress import Progress

if TYPE_CHECKING:
    from mvstack.cache.use import Caches


def prepare(
    system: System, root: Path | None, yes: bool, progress: Progress, profile: str = ""
) -> None:
    """See that the distribution's packages are there; with ``yes`` and root, install them."""
    import os

    from mvstack.discover import look
    from mvstack.install.prerequisites import install_missing, lacking, refuse

    place = stages.root_for(system, root)
    missing = lacking(look().os or "this system", profile)
    if missing is None:
        return
    if os.geteuid() != 0 or not (yes or _agreed(missing)):
        raise refuse(missing)
    log = Path(place) / "logs" / "prerequisites.log"
    with progress.step("prepare", f"{len(missing.needed)} packages of the distribution", log=log):
        install_missing(missing, log)


def _agreed(missing: Lacking) -> bool:
    """Ask, on a terminal alone, whether to install what is missing."""
    import sys

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    names = " ".join(item.package for item in missing.needed)
    return typer.confirm(f"Missing: {names}\nInstall them now ({missing.line})?", err=True)


def install_system(
    name: str,
    release: str | None,
    root: Path | None,
    jobs: int | None,
    yes: bool,
    anyway: bool,
    prerequisites: bool,
    dry_run: bool,
    progress: Progress,
    caches: Caches | None = None,
    profile: str = "",
    keep_going: bool = False,
) -> list[dict[str, Any]]:
    """`mvstack install`: the rows of what was built, or taken from ``caches``."""
    from mvstack.builders.base import pending

    asked = load_system(split_name(name)[0])
    # where nothing may be built, an entry that lacks a library of the machine says so itself
    needed = prerequisites and not dry_run and not (caches and caches.only)
    # only `local` needs compilers to be looked at; else it is seen first whether it is this machine
    if needed and asked.discover:
        prepare(asked, root, yes, progress, profile)
    system, partitions = stages.load(name)
    partition = stages.only_one(name, partitions, "install")
    plan = stages.plan_for(system, partition, release, root, caches, profile)
    if not anyway:
        _fits_here(plan, system)
    if needed and not asked.discover:
        prepare(asked, root, yes, progress, plan.profile)
    if dry_run:
        return pending(plan)
    return _install(plan, system, jobs, progress, caches, keep_going)


def _fits_here(plan: Plan, system: System) -> None:
    """Refuse to build for another machine than this one; `local` is this one."""
    if not system.discover:
        from mvstack.discover import look
        from mvstack.plan.local import same_machine

        same_machine(plan, look())


def _install(
    plan: Plan,
    system: System,
    jobs: int | None,
    progress: Progress,
    caches: Caches | None = None,
    keep_going: bool = False,
) -> list[dict[str, Any]]:
    from mvstack.builders.base import install
    from mvstack.cache.use import site_caches

    fetcher = stages.fetcher_for(plan.root, progress)
    site = system.install
    return install(
        plan,
        fetcher,
        progress,
        jobs=jobs,
        umask=site.umask,
        group=site.group,
        caches=caches or site_caches(),
        keep_going=keep_going,
    )


def installed_here(
    name: str, release: str | None, root: Path | None, command: str
) -> tuple[Path, dict[str, Any]]:
    """The tree and plan of what is installed under ``name``; for `local` nothing is looked at."""
    system_name, partition = split_name(name)
    system = load_system(system_name)
    if not system.discover and not partition:
        partition = stages.only_one(name, list(system.partitions), command)
    place = stages.root_for(system, root)
    tree, plan = stages.installed_plan(
        system.name, partition or "node", place, load_release(release).name
    )
    return tree, plan


def test_system(
    name: str, tags: list[str], release: str | None, root: Path | None, progress: Progress
) -> dict[str, Any]:
    """`mvstack test`: the results of ReFrame's run."""
    _, plan = installed_here(name, release, root, "test")
    return stages.run_tests(plan, tags, progress)


def report_system(
    name: str,
    release: str | None,
    root: Path | None,
    html: Path | None,
    as_json: bool,
    console: Console,
) -> None:
    """`mvstack report`: the terminal's table and the HTML page."""
    from mvstack.report import as_json as to_json
    from mvstack.report import gather, write_html

    tree, _ = installed_here(name, release, root, "report")
    if as_json:
        data = gather(tree)
        if html is not None:
            write_html(data, html)
        print(json.dumps(to_json(data), indent=2))
        return
    _report(tree, html, console)


def _report(tree: Path, html: Path | None, console: Console) -> None:
    from mvstack.report import gather, print_report, write_html

    data = gather(tree)
    page = write_html(data, html or tree / "report.html")
    print_report(data, console, page)


def bring_up(
    name: str,
    release: str | None,
    root: Path | None,
    jobs: int | None,
    yes: bool,
    prerequisites: bool,
    progress: Progress,
    console: Console,
    profile: str = "",
) -> MvstackError | None:
    """`mvstack up`: the error to end with when checks failed, after the report was written."""
    from mvstack.builders.base import steps
    from mvstack.cli.explain import show_plan

    asked = load_system(split_name(name)[0])
    if prerequisites and asked.discover:
        prepare(asked, root, yes, progress, profile)
    # as many as there are before the plan is known; the nodes of the plan come on top
    progress.total = progress.number + 4
    with progress.step("discover", name):
        system, partitions = stages.load(name)
        partition = stages.only_one(name, partitions, "up")
    with progress.step("choose", f"the MPI for {system.name}/{partition}"):
        plan = stages.plan_for(system, partition, release, root, profile=profile)
        _fits_here(plan, system)
    if prerequisites and not asked.discover:
        prepare(asked, root, yes, progress, plan.profile)
    progress.total += steps(plan)
    show_plan(plan, system, console)
    rows = _install(plan, system, jobs, progress)
    tree = Path(plan.tree)
    tested = any((tree / "records" / "results").glob("*.json"))
    failed: MvstackError | None = None
    try:
        results = stages.run_tests(
            plan.as_dict(), ["smoke"] if tested and not rows else [], progress
        )
        failed = stages.failed_checks(results)
    except CheckFailed as error:
        failed = error
    _report(tree, None, console)
    return failed
