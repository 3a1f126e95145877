"""Run the checks on an installed tree, and keep what they found with it."""

import shutil
import time
from pathlib import Path
from typing import Any

from mvstack.support.errors import CheckFailed, Refused
from mvstack.support.progress import Progress
from mvstack.test.results import problems
from mvstack.test.run import run_checks
from mvstack.tree.modules import core_file


def run_tests(plan: dict[str, Any], tags: list[str], progress: Progress) -> dict[str, Any]:
    """Run the checks on what ``plan`` installed, keep the results, and return them.

    Raises CheckFailed when ReFrame could not be trusted, Refused when the installation is not
    complete; failed checks are in the results.
    """
    tree = Path(plan["tree"])
    if not core_file(tree, plan["release"]).is_file():
        raise Refused(
            "the installation did not come to its end: mvapich-stack has no module",
            str(tree),
            because="it is taken away before what it names is built anew",
            todo=f"mvstack install {plan['system']}/{plan['partition']}, which goes on",
        )
    out = tree / "records" / "last-test"
    try:
        return checked(plan, out, tags, progress)
    finally:
        keep_results(out / "results.json", tree / "records" / "results")


def checked(plan: dict[str, Any], out: Path, tags: list[str], progress: Progress) -> dict[str, Any]:
    """Run the checks as one step of progress; as :func:`mvstack.test.run.run_checks`."""
    what = ("checks with tag " + ", ".join(tags)) if tags else "all checks"
    with progress.step("test", what, log=out / "reframe.out") as step:
        return run_checks(plan, out, tags, step.note)


def keep_results(results: Path, folder: Path) -> None:
    """Keep the results of a run of checks beside those of earlier ones, by its time."""
    if results.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        shutil.copyfile(results, folder / f"{stamp}.json")


def failed_checks(results: dict[str, Any]) -> CheckFailed | None:
    """The error that names every check that did not pass; None when all passed or were skipped."""
    found = problems(results)
    return CheckFailed(*found) if found else None
