"""Puts together what a pipeline has (listing) and what ran (records, log) as the jobs' outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gitlab import listing
from gitlab.command import STATE, Setting
from gitlab.listing import Planned
from gitlab.records import Record
from gitlab.result import FAILED, NOT_RUN, PASSED, WARNED, Job

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
Key = tuple[tuple[str, ...], str]


def outcomes(
    tool: Sequence[str], setting: Setting, records: Sequence[Record], log: Path
) -> list[Job]:
    """Every job of the pipeline and of those below it, in the order of their listing.

    A job that ran though no listing has it comes last, as it would in a pipeline that could not
    be listed after the run.
    """
    ran = {(record.pipeline, record.name): record for record in records}
    printed = output(log.read_text(encoding="utf-8", errors="replace"), ran)
    jobs = list(_pipeline(tool, setting, (), {}, ran, printed))
    listed = {(job.pipeline, job.name) for job in jobs}
    for key, record in ran.items():
        if key not in listed:
            extra = Planned(record.name, record.environment["CI_JOB_STAGE"], "on_success", False)
            jobs.append(_job(extra, key[0], record, printed))
    return jobs


def output(text: str, keys: Mapping[Key, object]) -> dict[Key, tuple[str, ...]]:
    """The lines that each job printed, out of the log in which they are mixed."""
    prefixes = {_prefix(key): key for key in keys}
    found: dict[Key, list[str]] = {key: [] for key in keys}
    for line in text.splitlines():
        plain = COLOURS.sub("", line)
        fits = [prefix for prefix in prefixes if plain.startswith(prefix)]
        if fits:
            prefix = max(fits, key=len)
            found[prefixes[prefix]].append(plain.removeprefix(prefix))
    return {key: tuple(lines) for key, lines in found.items()}


def _prefix(key: Key) -> str:
    path, name = key
    leading = "\t" * len(path) + f"[{' -> '.join(path)}] -> " if path else ""
    return f"{leading}{name} > "


def _pipeline(
    tool: Sequence[str],
    setting: Setting,
    path: tuple[str, ...],
    handed: Mapping[str, str],
    ran: Mapping[Key, Record],
    printed: Mapping[Key, tuple[str, ...]],
) -> Iterator[Job]:
    try:
        found = listing.planned(tool, setting, path, handed)
    except listing.Unreadable:
        return  # the run has failed for the same reason, with the same words in its log
    for planned in found:
        record = ran.get((path, planned.name))
        if not planned.is_trigger:
            yield _job(planned, path, record, printed)
            continue
        below: list[Job] = []
        file = setting.project.folder / STATE / "includes" / "triggers" / f"{planned.name}.yml"
        if file.is_file():
            deeper = (*path, planned.name)
            below = list(_pipeline(tool, setting, deeper, planned.hands, ran, printed))
        yield _trigger(planned, path, file.is_file(), below)
        yield from below


def _job(
    planned: Planned,
    path: tuple[str, ...],
    record: Record | None,
    printed: Mapping[Key, tuple[str, ...]],
) -> Job:
    name, stage, when = planned.name, planned.stage, planned.when
    if record is None:
        why = "manual" if when == "manual" else ""
        return Job(name, path, stage, when, NOT_RUN, why)
    status, why = record.status, ""
    if status is None:
        outcome, why = FAILED, "killed"
    elif status == 0:
        outcome = PASSED
    else:
        outcome = WARNED if planned.allows(status) else FAILED
        why = f"killed by signal {status - 128}" if status > 128 else ""
    seconds = record.end - record.begin if record.end is not None else None
    lines, environment = printed.get((path, name), ()), record.environment
    return Job(name, path, stage, when, outcome, why, status, seconds, lines, environment)


def _trigger(planned: Planned, path: tuple[str, ...], began: bool, below: Sequence[Job]) -> Job:
    """The job that started a pipeline: it fails as that does, and where that has no job."""
    failed = [job for job in below if job.outcome == FAILED]
    outcome, why = PASSED, ""
    if not began:
        outcome, why = NOT_RUN, "manual" if planned.when == "manual" else ""
    elif not below:
        outcome, why = FAILED, "its pipeline has no job"
    elif failed and planned.waits:
        outcome, why = FAILED, f"{failed[0].where} failed"
    if outcome == FAILED and planned.allows(None):
        outcome = WARNED
    return Job(planned.name, path, planned.stage, planned.when, outcome, why)
