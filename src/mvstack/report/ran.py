"""What ran and how it ended: the runs of records/results, and the state of each check now.

A smoke run holds few checks, so the newest file alone does not say how a tree stands. For each
check the newest result counts that is younger than the MPI build it used; older ones are history,
good for the range of a plot only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from mvstack.report.data import Build, Case, Figure, Result, Run, Skip
from mvstack.report.records import Row, number, rows_of, text, whole, words

_RESULTS: dict[str, Result] = {"pass": "pass", "fail": "fail", "skip": "skip", "missing": "missing"}


def run_of(file: str, row: Row) -> Run:
    """One run out of its file."""
    return Run(
        file=file,
        started=text(row, "started"),
        seconds=number(row, "seconds"),
        reframe=text(row, "reframe"),
        tags=words(row, "tags"),
        ignored=words(row, "ignored"),
        cases=tuple(_case(case) for case in rows_of(row, "cases")),
        skipped=tuple(Skip(text(one, "what"), text(one, "why")) for one in rows_of(row, "skipped")),
        contents=_contents(row.get("contents")),
    )


def _contents(said: object) -> tuple[tuple[str, str], ...]:
    pairs = said.items() if isinstance(said, dict) else ()
    return tuple(sorted((str(module), str(content)) for module, content in pairs))


def _case(row: Row) -> Case:
    said = text(row, "result")
    result = _RESULTS.get(said)
    why = text(row, "why")
    if result is None:
        # An unknown word must never read as a success.
        result, why = "missing", f"the record says {said!r}, which is no result. {why}".strip()
    return Case(
        check=text(row, "check"),
        description=text(row, "description"),
        mpi=text(row, "mpi"),
        ranks=whole(row, "ranks"),
        result=result,
        why=why,
        seconds=number(row, "seconds"),
        benchmark=text(row, "benchmark"),
        figures=tuple(_figure(figure) for figure in rows_of(row, "figures")),
    )


def _figure(row: Row) -> Figure:
    return Figure(
        name=text(row, "name"),
        size=whole(row, "size"),
        value=number(row, "value"),
        unit=text(row, "unit"),
        reference=number(row, "reference"),
        allowed=_allowed(row.get("allowed")),
    )


def _allowed(value: object) -> str:
    """The permitted deviation as text; a pair is ReFrame's: fractions below and above."""
    if isinstance(value, list) and len(value) == 2:
        low, high = (number({"": item}, "") for item in value)
        below = f"{low:+.0%}" if low is not None else "any less"
        above = f"{high:+.0%}" if high is not None else "any more"
        return f"{below} to {above}"
    return text({"": value}, "")


def when(stamp: str) -> datetime | None:
    """A recorded time; one without a zone is taken as UTC; None when it is no time."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def in_order(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs, oldest first; those without a time come before all others, by file name."""
    oldest = datetime.min.replace(tzinfo=UTC)
    return tuple(sorted(runs, key=lambda run: (when(run.started) or oldest, run.file)))


def same_module(left: str, right: str) -> bool:
    """Whether two names mean one MPI build: ReFrame's environments have - where modules have /."""
    return _plain(left) == _plain(right)


def _plain(name: str) -> str:
    return name.lower().replace("/", "-").replace("@", "-")


def relabel(runs: Iterable[Run], labels: Iterable[str]) -> tuple[Run, ...]:
    """The runs with each case's MPI named as the plan names its module."""
    known = {_plain(label): label for label in labels}

    def named(case: Case) -> Case:
        return replace(case, mpi=known.get(_plain(case.mpi), case.mpi))

    return tuple(replace(run, cases=tuple(map(named, run.cases))) for run in runs)


def built_at(builds: Iterable[Build]) -> dict[str, datetime]:
    """When the last build of each module began, for those that say."""
    stamps = ((_plain(build.module), when(build.started)) for build in builds if build.module)
    return {module: stamp for module, stamp in stamps if stamp is not None}


def counts_now(
    case: Case,
    run: Run,
    labels: list[str],
    built: Mapping[str, datetime],
    contents: frozenset[tuple[str, str]] = frozenset(),
) -> bool:
    """Whether this result tells of the tree as it is: its MPI is planned and not built since.

    A run that says which content its MPI had counts for that content, wherever it ran: what a
    pipeline checked and then deployed is the same bytes.
    """
    if labels and case.mpi and case.mpi not in labels:
        return False
    same = {module for module, content in run.contents if (module, content) in contents}
    if _plain(case.mpi) in map(_plain, same):
        return True
    began, since = when(run.started), built.get(_plain(case.mpi))
    return began is None or since is None or began >= since


def current_cases(
    runs: tuple[Run, ...],
    labels: list[str],
    built: Mapping[str, datetime],
    contents: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[Case, ...]:
    """For each check and MPI build the newest result that counts.

    The latest run's come first, in its order; a case from an older run says which in ``run``.
    """
    found: dict[tuple[str, str], Case] = {}
    for run in reversed(runs):
        for case in run.cases:
            if counts_now(case, run, labels, built, contents):
                old = "" if run is runs[-1] else (run.started or run.file)
                found.setdefault((case.check, case.mpi), replace(case, run=old))
    return tuple(found.values())
