"""What joins installing, testing and reporting: `mvstack up`, `test` and `report`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.console import Console

from mvstack.builders.base import builder_of
from mvstack.cli.explain import show_plan
from mvstack.install import flow
from mvstack.install.stages import installed_here
from mvstack.report import as_json as to_json
from mvstack.report import gather, print_report, write_html
from mvstack.support.console import emit
from mvstack.support.errors import CheckFailed, MvstackError
from mvstack.support.progress import Progress
from mvstack.test.installed import failed_checks, run_tests


def bring_up(request: flow.Request, progress: Progress, console: Console) -> MvstackError | None:
    """`mvstack up`: the error to end with when checks failed, after the report was written."""

    def step(name: str, what: str) -> AbstractContextManager[object]:
        if name == "discover":  # until the plan is known; its nodes come on top
            progress.total = progress.number + 4
        return progress.step(name, what)

    planned = flow.plan(request, "up", progress, step)
    plan = planned.plan
    progress.total += builder_of(plan.builder).steps(plan)
    show_plan(plan, planned.system, console)
    rows = flow.carry_out(planned, request, progress)
    tree = Path(plan.tree)
    tested = any((tree / "records" / "results").glob("*.json"))
    failed: MvstackError | None = None
    try:
        tags = ["smoke"] if tested and not rows else []
        failed = failed_checks(run_tests(plan.as_dict(), tags, progress))
    except CheckFailed as error:
        failed = error
    report_tree(tree, None, False, console)
    return failed


def test_system(
    name: str, tags: list[str], release: str | None, root: Path | None, progress: Progress
) -> dict[str, Any]:
    """`mvstack test`: the results of ReFrame's run."""
    _, plan = installed_here(name, release, root, "test")
    return run_tests(plan, tags, progress)


def report_tree(tree: Path, html: Path | None, as_json: bool, console: Console) -> None:
    """`mvstack report`: the terminal's table and the HTML page, or JSON."""
    data = gather(tree)
    page = None if as_json and html is None else write_html(data, html or tree / "report.html")
    if as_json or page is None:
        emit(to_json(data))
    else:
        print_report(data, console, page)
