"""How a pipeline ended: each job of it and of its child pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, WARNED, NOT_RUN = "passed", "failed", "warned", "not run"


@dataclass(frozen=True)
class Job:
    """A job that the pipeline has by its rules, whether it ran or not."""

    name: str
    pipeline: tuple[str, ...]  # trigger jobs that lead to its pipeline; () is the parent's
    stage: str
    when: str
    outcome: str  # PASSED, FAILED, WARNED (failed, and that is allowed) or NOT_RUN
    why: str = ""  # the reason of an outcome that is no exit status
    status: int | None = None  # exit status of its script
    seconds: float | None = None
    lines: tuple[str, ...] = ()  # what it printed, without the commands that GitLab echoes
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # what it began with

    @property
    def where(self) -> str:
        """Its name behind those of the trigger jobs: ``conduct -> mri-cpu -> stage``."""
        return " -> ".join((*self.pipeline, self.name))

    @property
    def output(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Result:
    """A run of a pipeline. `ok` is what GitLab would say of it, not what the exit status says."""

    jobs: tuple[Job, ...]
    status: int  # exit status of gitlab-ci-local: 0 also when only a child pipeline failed
    log: Path  # all that it printed
    chosen: bool = False  # only the jobs named were to run

    @property
    def ok(self) -> bool:
        """Whether every job that was to run ran, and none failed that must not."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """What makes it not ok, one line each, with the end of a failed job's output."""
        found = [
            "\n    ".join(
                [f"{job.where}: {job.why or f'exit status {job.status}'}", *job.lines[-8:]]
            )
            for job in self.jobs
            if job.outcome == FAILED
        ]
        if self.status and not found:
            end = self.text.strip().splitlines()[-12:]
            found = ["\n    ".join([f"gitlab-ci-local: exit status {self.status}", *end])]
        if not found and not self.chosen:
            found = [
                f"{job.where}: did not run, though nothing failed"
                for job in self.jobs
                if job.outcome == NOT_RUN and job.when in ("on_success", "always")
            ]
        return found

    @property
    def text(self) -> str:
        """All that gitlab-ci-local printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def job(self, *names: str) -> Job:
        """The job of that name; names of trigger jobs before it say in which pipeline.

        One name alone is looked for everywhere. Raises KeyError where no job, or more than one,
        is meant.
        """
        found = [
            job
            for job in self.jobs
            if job.name == names[-1] and (len(names) == 1 or job.pipeline == names[:-1])
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} jobs are {names}; there are {self.names()}")
        return found[0]

    def names(self, *outcomes: str) -> list[str]:
        """`where` of each job, or of those with these outcomes."""
        return [job.where for job in self.jobs if not outcomes or job.outcome in outcomes]

    def __str__(self) -> str:
        lines = [f"{job.outcome:8} {job.where}  {job.why}".rstrip() for job in self.jobs]
        return "\n".join([*lines, *self.problems, f"log: {self.log}"])
