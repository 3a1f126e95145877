"""What `bash-recorded` noted of each job that began."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


class Collision(Exception):
    """Jobs of one name ran at the same time in two pipelines, in one folder.

    gitlab-ci-local keeps folders and artifacts by the job's name alone; GitLab does not. Give the
    jobs names that differ, or run the pipelines one after the other (``concurrency=1``).
    """


@dataclass(frozen=True)
class Record:
    """A job whose shell began: its pipeline, its name, and how it ended."""

    pipeline: tuple[str, ...]  # trigger jobs that lead to it, outermost first
    name: str
    begin: float  # seconds since 1970
    end: float | None
    status: int | None  # None: its shell was killed together with what noted its end
    environment: dict[str, str]


def read(folder: Path) -> list[Record]:
    """The records below a folder, the earliest first."""
    found = [_record(path) for path in folder.iterdir() if (path / "environment").is_file()]
    return sorted(found, key=lambda record: record.begin)


def _record(path: Path) -> Record:
    raw = (path / "environment").read_bytes().decode(errors="replace")
    environment = dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)
    leading = environment.get("GCL_TRIGGERER", "")
    ended = (path / "status").is_file()
    return Record(
        pipeline=tuple(leading.split(" -> ")) if leading else (),
        name=environment["CI_JOB_NAME"],
        begin=float((path / "begin").read_text()),
        end=float((path / "end").read_text()) if ended else None,
        status=int((path / "status").read_text()) if ended else None,
        environment=environment,
    )


def refuse_collisions(records: Iterable[Record]) -> None:
    """Raise Collision where two jobs of one name overlapped in time."""
    last: dict[str, Record] = {}
    for record in sorted(records, key=lambda one: one.begin):
        before = last.get(record.name)
        if before and (before.end is None or before.end > record.begin):
            # by name: which of the two began first differs from run to run
            both = sorted(" -> ".join(one.pipeline) or "the parent" for one in (before, record))
            raise Collision(f"{record.name} ran at the same time in {' and in '.join(both)}")
        last[record.name] = record
