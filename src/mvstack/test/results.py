"""From ReFrame's report to ours.

The results are one JSON object::

    started     when, ISO 8601 UTC            seconds   how long all took
    reframe     its version                   tags      what was asked for ([] is everything)
    ignored     names of MPI settings in the caller's environment that the checks did not see
    cases       one for each check, parameter and MPI build:
      check, description, mpi (its module), ranks, seconds, benchmark (what made the figures)
      result    pass | fail | skip | missing (should have run and did not)
      why       one paragraph, empty for a pass
      figures   name, size (bytes or null), value, unit, reference (or null), allowed (text)
    skipped     what, why
    slower      what, why: figures that are worse than all earlier ones of this machine
"""

import re
from pathlib import Path
from typing import Any

from mvstack.support.errors import Problem
from mvstack.support.words import few
from mvstack.test.expected import Check

_LAST_LINES = 6
# What Lmod says where the MPI under test takes the place of the stack's default.
_RELOADED = r"The following have been reloaded with a version change:|\d+\) \S+ => \S+$"
_POINT = r"^Lmod has detected|, needed by \S+, not found"
Json = dict[str, Any]


def environment_name(module: str) -> str:
    """ReFrame's name of the environment of an MPI build, as tests/reframe/settings.py writes it."""
    return module.replace("/", "-").replace(".", "_")


def cases(report: Json, output: list[str], expected: list[Check], plan: Json) -> list[Json]:
    """A case for each expected check and MPI build; "missing" where the report has none.

    A check of a package has none for an MPI build over which the plan lacks it.
    """
    skips = skip_reasons(output)
    warnings = skipped_files(output)
    reported = {
        (*_key(entry["name"]), entry["environ"]): entry
        for run in report.get("runs", [])
        for entry in run["testcases"]
    }
    found = []
    for check in expected:
        for mpi in plan["mpi"]:
            if not check.runs_over(mpi, plan):
                continue
            entry = reported.get((check.name, check.values, environment_name(mpi["module"])))
            why = _missing(check, warnings, output)
            verdict = _verdict(entry, skips) if entry else ("missing", why)
            found.append(_case(check, mpi["module"], entry or {}, *verdict))
    return found


def skip_reasons(output: list[str]) -> dict[str, str]:
    """Why ReFrame says that it skipped: ``{"<hash> <environment>": reason}``, from its output."""
    skip = re.compile(r"\[\s+SKIP\s+\].* /(\w+) @[^+ ]+\+(\S+)(?: \[(.*)\])?$")
    rows = map(skip.search, output)
    return {f"{row[1]} {row[2]}": row[3] or "" for row in rows if row}


def skipped_files(output: list[str]) -> dict[str, str]:
    """Check files that ReFrame could not import, by name, with what it said about each."""
    found: dict[str, str] = {}
    for number, line in enumerate(output):
        row = re.search(r"skipping test(?: file)? '([^']+)': (.*)$", line)
        if row:
            more = [item[2:].strip() for item in output[number + 1 :] if item.startswith("| ")]
            found[Path(row[1]).name] = " ".join([row[2].strip(), *more[:2]])
    return found


def problems(results: Json, history: bool = False) -> list[Problem]:
    """What failed, did not run or, with ``history``, became slower; each reason is said once."""
    said: dict[tuple[str, str], list[str]] = {}
    for case in results["cases"]:
        if result := {"fail": "failed", "missing": "did not run"}.get(case["result"]):
            said.setdefault((result, case["why"]), []).append(f"{case['check']} with {case['mpi']}")
    for row in results["slower"] if history else []:
        said.setdefault(("became slower", row["why"]), []).append(row["what"])
    return [Problem(what, where=few(one), because=why) for (what, why), one in said.items()]


def _key(name: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """``WorldSize %ranks=2`` as the check's name and the values of its parameters."""
    head, *rest = name.split(" %")
    pairs = (item.partition("=") for item in rest)
    return head, frozenset((key, value) for key, _, value in pairs)


def _case(check: Check, mpi: str, entry: Json, result: str, why: str) -> Json:
    """One row of the results; ``entry`` is ReFrame's, {} where it has none.

    Its seconds are those spent on the case itself: ReFrame's total counts waiting for others too.
    """
    phases = ("time_setup", "time_compile", "time_run", "time_sanity", "time_performance")
    return {
        "check": " ".join([check.name, *(value for _, value in sorted(check.values))]),
        "description": check.description,
        "mpi": mpi,
        "ranks": entry.get("num_tasks"),
        "result": result,
        "why": why,
        "seconds": round(sum(entry.get(one) or 0.0 for one in phases), 3) if entry else None,
        "benchmark": entry.get("benchmark") or "",
        "figures": [_figure(name, row) for name, row in (entry.get("perfvalues") or {}).items()],
    }


def _verdict(entry: Json, skips: dict[str, str]) -> tuple[str, str]:
    """The result of ReFrame's ``entry``, and why it is not a pass."""
    match entry["result"]:
        case "pass" | "xfail":
            return "pass", ""
        case "skip":
            where = f"{entry['hashcode']} {entry['environ']}"
            return "skip", skips.get(where, "ReFrame gave no reason")
    return "fail", failure(entry)


def _missing(check: Check, warnings: dict[str, str], output: list[str]) -> str:
    """Why ReFrame did not run a check, as far as its output tells."""
    why = warnings.get(check.file.name) or warnings.get(check.name)
    last = " / ".join(line.strip() for line in output[-_LAST_LINES:] if line.strip())
    return f"{check.file.name}: {why}" if why else f"ReFrame did not say why. It ends with: {last}"


def failure(entry: Json) -> str:
    """Why a case failed, in one paragraph: ReFrame's reason, then the last lines of its stderr."""
    reason = " ".join((entry.get("fail_reason") or "no reason given").split())
    reason = re.sub(r"^(sanity|performance|job|build|pipeline) error: ", "", reason)
    late = re.search(r"job timed out \(([\d.]+)s > ([\d.]+)s\)", reason)
    if late:
        reason = (
            f"it did not return within its limit of {float(late[2]):g} s: it hangs (a fabric or "
            f"provider that does not answer), or the machine is far too busy"
        )
    phase = entry.get("fail_phase") or ""
    stream = "build_stderr" if phase.startswith("compile") else "job_stderr"
    said = last_lines(Path(entry.get("stagedir") or ".", entry.get(stream) or ""))
    parts = [reason if phase in ("sanity", "performance", "") else f"{reason} (in {phase})"]
    if said:
        parts.append(f"stderr ends: {said}")
    if entry.get("stagedir"):
        parts.append(f"files: {entry['stagedir']}")
    return "; ".join(parts)


def last_lines(path: Path) -> str:
    """The last lines of a text file as one, " / " between them; "" when there is none.

    Where Lmod or the linker says the point first, its first lines are shown.
    """
    if not path.is_file():
        return ""
    lines = [one.strip() for one in path.read_text(errors="replace").splitlines()]
    lines = [one for one in lines if one and not re.match(_RELOADED, one)]
    first = [at for at, line in enumerate(lines) if re.search(_POINT, line)]
    shown = lines[first[0] : first[0] + 2] if first else lines[-_LAST_LINES:]
    return " / ".join(shown)


def _figure(name: str, row: list[Any]) -> Json:
    """One row of ReFrame's perfvalues: [value, reference, lower, upper, unit, verdict]."""
    value, reference, lower, upper, unit, *_ = row
    short = name.rsplit(":", 1)[-1]
    sized = re.fullmatch(r"(.+)_(\d+)", short)
    judged = lower is not None or upper is not None
    bounds = ("any" if bound is None else f"{100 * bound:+.0f} %" for bound in (lower, upper))
    return {
        "name": sized[1] if sized else short,
        "size": int(sized[2]) if sized else None,
        "value": value,
        "unit": unit,
        "reference": reference if judged else None,
        "allowed": " to ".join(bounds) if judged else "",
    }
