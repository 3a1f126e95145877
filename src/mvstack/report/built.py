"""What was built, from which sources, how long it took: builds.jsonl and sources.jsonl."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from mvstack.report.data import Build, Notice, Source
from mvstack.report.records import Row, mapping, number, rows_of, text, whole


def builds_of(planned: Iterable[Row], rows: Iterable[Row]) -> tuple[Build, ...]:
    """One :class:`Build` for each package, in the plan's order, then what else was built.

    A package may have many rows, one for each installation: the last tells how it is now, the last
    that really built it tells steps, times and sources ("present" rows have none to tell).
    """
    history: dict[str, list[Row]] = {}
    for row in rows:
        history.setdefault(_key(row), []).append(row)
    found = []
    for plan in planned:
        key = next((key for key, own in history.items() if _same(plan, own[-1])), "")
        found.append(_build(plan, history.pop(key, [])))
    return (*found, *(_build({}, own) for own in history.values()))


def _key(row: Row) -> str:
    """What tells one package of a tree from another: its easyconfig, or else its module."""
    return text(row, "easyconfig") or f"{text(row, 'module')} {text(row, 'mpi')} {_name(row)}"


def _same(plan: Row, row: Row) -> bool:
    """Whether a planned package and a row of the records are the same."""
    if text(plan, "easyconfig") and text(row, "easyconfig"):
        return text(plan, "easyconfig") == text(row, "easyconfig")
    mpi = {text(one, "mpi") for one in (plan, row)} - {""}
    if text(plan, "module") and text(row, "module"):
        return text(plan, "module").lower() == text(row, "module").lower() and len(mpi) < 2
    return _name(plan) == _name(row) and len(mpi) < 2


def _name(row: Row) -> str:
    return f"{text(row, 'package') or text(row, 'name')} {text(row, 'version')}".lower()


def _build(plan: Row, history: list[Row]) -> Build:
    last = history[-1] if history else {}
    real = next(
        (row for row in reversed(history) if text(row, "result") in ("built", "cached")), last
    )
    result = text(last, "result")
    head = {**plan, **last}
    return Build(
        package=text(head, "package") or text(head, "name"),
        version=text(head, "version"),
        module=text(head, "module"),
        mpi=text(head, "mpi"),
        planned=bool(plan),
        easyconfig=text(head, "easyconfig"),
        result=result or "not built yet",
        state="built" if result in ("built", "present", "cached") else "rendered",
        seconds=number(real, "seconds"),
        steps=_steps(real),
        started=text(real, "started"),
        host=text(real, "host"),
        cores=whole(real, "cores"),
        log=text(last, "log"),
        sha256=text(plan, "sha256"),
        sources=tuple(source_of(row) for row in rows_of(real, "sources")),
    )


def _steps(row: Row) -> tuple[tuple[str, float], ...]:
    steps = mapping(row, "steps")
    known = ((text({"": name}, ""), number(steps, name)) for name in steps)
    return tuple((name, seconds) for name, seconds in known if seconds is not None and seconds >= 0)


def source_of(row: Row) -> Source:
    """One source; a row that does not say whose bytes it holds is not taken for upstream's."""
    return Source(
        file=PurePath(text(row, "file")).name,
        sha256=text(row, "sha256"),
        place=text(row, "place"),
        upstream=row.get("upstream") is True,
        # the fetcher begins its note with the words that the report prints anyway
        note=text(row, "note").removeprefix("not upstream's bytes: "),
    )


def other_sources(builds: Iterable[Build], rows: Iterable[Row]) -> tuple[Source, ...]:
    """Sources that were fetched but belong to no build that is recorded, each once."""
    used = {source.sha256 for build in builds for source in build.sources}
    found: dict[tuple[str, str], Source] = {}
    for source in map(source_of, rows):
        if source.sha256 and source.sha256 not in used:
            found[source.file, source.sha256] = source
    return tuple(found.values())


def build_notices(builds: Iterable[Build], others: Iterable[Source]) -> list[Notice]:
    """Failed builds, and each source that does not hold upstream's own bytes, once."""
    notices = []
    strangers: dict[Source, dict[str, None]] = {source: {} for source in others}
    for build in builds:
        name = f"{build.package} {build.version}".strip()
        if build.result == "failed":
            log = f"read {build.log}" if build.log else "install again with the same command"
            notices.append(Notice("build", name, "was not built: its build failed", log))
        for source in build.sources:
            strangers.setdefault(source, {})[name] = None
    for source, users in strangers.items():
        if not source.upstream:
            where = f"{', '.join(users)}, {source.file}" if users else source.file
            reason = source.note or "no reason is recorded"
            notices.append(Notice("bytes", where, "not upstream's bytes", reason))
    return notices
