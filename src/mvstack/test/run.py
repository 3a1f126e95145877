"""Run ReFrame over a plan or what it installed, keep the results, and trust no exit code."""

import contextlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack.support import locks
from mvstack.support.errors import CheckFailed, Locked, Missing, Refused
from mvstack.support.files import write_atomically
from mvstack.support.home import DATA, home
from mvstack.support.processes import GRACE, Limits, follow
from mvstack.support.progress import Progress
from mvstack.support.words import listed, nearest
from mvstack.test.expected import Check, expected_checks
from mvstack.test.history import earlier_runs, slower
from mvstack.test.results import cases, problems
from mvstack.tree.folder import writable
from mvstack.tree.modules import core_file, lmod_here

#: The checks that come with this repository.
CHECKS = DATA / "tests" / "reframe"
_LAST_LINES = 15
# Lmod's memory of what is loaded, and a parent's place in another MPI job.
_STATE = (
    *("MODULEPATH", "LOADEDMODULES", "_LMFILES_", "_ModuleTable", "__LMOD_", "BASH_FUNC_module"),
    *("BASH_FUNC_ml", "PMI_", "PMIX_", "RFM_"),
)
# What changes how an MPI behaves: checks must see what `module load` alone gives.
TUNING = ("MPIR_CVAR_", "MPICH_", "MVP_", "MV2_", "FI_", "UCX_", "I_MPI_", "HYDRA_")


def run_checks(
    plan: dict[str, Any],
    out: Path,
    tags: list[str],
    on_line: Callable[[str], None] | None = None,
    checks: Path = CHECKS,
    only: Check | None = None,
) -> dict[str, Any]:
    """Run the checks that have one of ``tags`` (all, if empty) for every MPI build of ``plan``.

    With ``only`` that check alone is run, whatever its tags.

    Below ``out`` come plan.json, results.json, reframe.json, junit.xml, reframe.out and the folders
    of failed checks. ``on_line`` gets each line that ReFrame prints. The results are returned
    whether checks passed or failed; :mod:`mvstack.test.results` says their form.

    :raises Missing: ReFrame is not installed beside this Python.
    :raises CheckFailed: a check that should have run did not, no check has such a tag, or ReFrame
        broke down. results.json is written all the same.
    """
    every = every_check(checks)
    expected = [check for check in every if not tags or check.tags & set(tags)]
    expected = [only] if only else expected
    if not expected:
        known = sorted({tag for check in every for tag in check.tags})
        raise CheckFailed(
            f"no check has one of the tags {', '.join(tags)}",
            str(checks),
            allowed=listed(known),
            nearest=nearest(tags[0], known) if tags else "",
        )
    out = out.resolve()
    _clear(out)
    (out / "plan.json").write_text(json.dumps(plan, indent=1) + "\n")
    environ, ignored = for_checks(os.environ)
    started, began = datetime.now(UTC), time.monotonic()
    output: list[str] = []

    def take(line: str) -> None:
        output.append(line)
        if on_line is not None:
            on_line(line)

    try:
        if lmod := lmod_here(plan.get("root", "")):
            environ["LMOD_PKG"] = str(Path(lmod).resolve().parents[1])
        environ["MVSTACK_PLAN"] = str(out / "plan.json")  # tests/reframe/settings.py reads it
        command = _command(out, tags, [only.file] if only else _folders(checks))
        if only:  # without the other files, which take seconds to read
            environ["PYTHONPATH"] = str(CHECKS)
            # ReFrame has them in order of declaration, and without spaces
            words = [re.escape(f"%{x}={y}".replace(" ", "")) for x, y in only.values]
            ways = "".join(f"(?=.*{one}(%|$))" for one in words)
            command += ["-n", f"^{only.name}(?=%|$){ways}"]
        code = follow(command, environ, line=take, cwd=out, limits=Limits(grace=GRACE))
    finally:
        (out / "reframe.out").write_text("\n".join(output) + "\n")
    report: dict[str, Any] = {}
    # it may have broken down before it wrote one, or meanwhile
    with contextlib.suppress(OSError, ValueError, TypeError):
        report = dict(json.loads((out / "reframe.json").read_text()))
    results = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - began, 3),
        "reframe": report.get("session_info", {}).get("version", ""),
        "tags": tags,
        "ignored": ignored,
        "cases": cases(report, output, expected, plan),
    }
    results["skipped"] = [
        {"what": f"{case['check']} with {case['mpi']}", "why": case["why"]}
        for case in results["cases"]
        if case["result"] == "skip"
    ]
    write_atomically(out / "results.json", json.dumps(results, indent=1) + "\n", mode=None)
    _trust(results, code, output, out, expected)
    return results


def _folders(checks: Path) -> list[Path]:
    """The site's last: what they share with ours is found once ours are loaded."""
    return [checks, *home().folders("checks")[:-1]]


def every_check(checks: Path = CHECKS) -> list[Check]:
    """Ours and those of the site."""
    return [check for folder in _folders(checks) for check in expected_checks(folder, [])]


def for_checks(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """``environ`` without module state and MPI settings, and the names of the settings left out."""
    kept = {
        name: value for name, value in environ.items() if not name.startswith((*_STATE, *TUNING))
    }
    kept["PYTHONUNBUFFERED"] = "1"  # so that lines arrive when they are printed
    return kept, sorted(name for name in environ if name.startswith(TUNING))


def _command(out: Path, tags: list[str], folders: list[Path]) -> list[str]:
    """ReFrame's command line; the one beside this Python, whatever PATH says."""
    reframe = Path(sys.executable).with_name("reframe")
    if not reframe.exists():
        raise Missing(
            "ReFrame is not installed beside this Python",
            str(reframe),
            todo="start mvstack by its launcher, which makes .venv with all it needs",
        )
    wanted = ["-t", f"^({'|'.join(map(re.escape, tags))})$"] if tags else []
    return [
        str(reframe),
        *("-C", str(CHECKS / "settings.py"), "--prefix", str(out), "--nocolor"),
        *(word for folder in folders for word in ("-c", str(folder))),
        *("--report-file", str(out / "reframe.json"), "--report-junit", str(out / "junit.xml")),
        *wanted,
        *("-R", "-r"),
    ]


def _clear(out: Path) -> None:
    """Make ``out``, without what an earlier run left: an old report must not pass for a new one."""
    out.mkdir(parents=True, exist_ok=True)
    for name in ("stage", "output"):
        shutil.rmtree(out / name, ignore_errors=True)
    for name in ("reframe.json", "junit.xml", "reframe.out", "results.json"):
        (out / name).unlink(missing_ok=True)


def _trust(
    results: dict[str, Any], code: int, output: list[str], out: Path, expected: list[Check]
) -> None:
    """Raise unless every expected check ran and ReFrame's exit code agrees with its report."""
    missing = [case for case in results["cases"] if case["result"] == "missing"]
    if missing:
        total = len(results["cases"])
        raise CheckFailed(
            *problems({"cases": missing}),
            outcome=f"ReFrame ran {total - len(missing)} of {total} checks; see {out}/reframe.out",
        )
    failed = any(case["result"] == "fail" for case in results["cases"])
    if bool(code) != failed:
        last = " / ".join(line for line in output[-_LAST_LINES:] if line.strip())
        raise CheckFailed(
            f"ReFrame ended with exit code {code}, which does not fit its report",
            where=str(out / "reframe.out"),
            found=f"{len(expected)} checks, {'some' if failed else 'none'} failed; {last}",
        )


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
    out, earlier = tree / "records" / "last-test", earlier_runs(tree)
    with alone(out):
        (out / "results.json").unlink(missing_ok=True)  # what is kept below is of this run
        try:
            results = checked(plan, out, tags, progress)
            results["slower"] = slower(results, earlier)
            write_atomically(out / "results.json", json.dumps(results, indent=1) + "\n", mode=None)
            return results
        finally:
            keep_results(out / "results.json", tree / "records" / "results")


@contextlib.contextmanager
def alone(out: Path, what: str = "the checks of this installation") -> Iterator[None]:
    """Keep others that run ``what`` from ``out`` while the block runs. Raises Locked, Missing."""
    with contextlib.ExitStack() as stack:
        try:
            with writable(f"the results of {what} cannot be kept", out):
                stack.enter_context(locks.hold(out.with_suffix(".lock"), wait=False))
        except locks.Held as held:
            todo = "wait until it has ended"
            what = f"another process is running {what}"
            raise Locked(what, str(out), found=held.holder, todo=todo) from None
        yield


def checked(plan: dict[str, Any], out: Path, tags: list[str], progress: Progress) -> dict[str, Any]:
    """Run the checks as one step of progress; as :func:`run_checks`."""
    what = ("checks with tag " + ", ".join(tags)) if tags else "all checks"
    with progress.step("test", what, log=out / "reframe.out") as step:
        return run_checks(plan, out, tags, step.note)


def keep_results(results: Path, folder: Path) -> None:
    """Keep the results of a run of checks beside those of earlier ones, by its time."""
    if results.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
        shutil.copyfile(results, folder / f"{stamp}.json")


def failed_checks(results: dict[str, Any], history: bool = False) -> CheckFailed | None:
    """The error that names every check that did not pass; None when all passed or were skipped.

    With ``history`` a figure that is worse than all earlier ones of the machine fails too.
    """
    found = problems(results, history)
    return CheckFailed(*found) if found else None
