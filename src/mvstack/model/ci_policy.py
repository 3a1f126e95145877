"""environments/policy/ci.yaml: GitLab's limits and the settings of generated jobs."""

from functools import cache
from typing import Annotated

from pydantic import Field, StringConstraints

from mvstack.model.base import Reasoned, Strict, validated
from mvstack.model.ci import Image
from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

Positive = Annotated[int, Field(ge=1)]
Duration = Annotated[str, StringConstraints(pattern=r"^\d+(h|h \d+m|m)$")]


class Limit(Strict):
    """One of GitLab's default limits. Pipelines keep to ``ours`` where that is less."""

    value: Positive
    ours: Positive | None = None
    what: str
    source: str

    @property
    def kept(self) -> int:
        """The number that generated pipelines keep to."""
        return min(self.value, self.ours or self.value)


class Limits(Strict):
    """The limits that generated pipelines could reach."""

    needs_per_job: Limit
    jobs_per_pipeline: Limit
    child_pipeline_bytes: Limit


class Timeouts(Strict):
    """How long a job may take; ``nightly`` is for scheduled checks of what is deployed."""

    build: Duration
    stage: Duration
    checks: Duration
    nightly: Duration
    why: str


class Retry(Strict):
    """Which failures are tried again, and how often."""

    max: Annotated[int, Field(ge=0, le=2)]
    when: list[str]
    why: str


class Expire(Strict):
    """How long artifacts are kept, and in days what a cancelled pipeline left in ``staging``."""

    handover: str
    reports: str
    staging: Positive
    why: str


class Jobs(Strict):
    """Settings of all generated jobs."""

    timeout: Timeouts
    retry: Retry
    expire: Expire


class JobImage(Reasoned):
    """The image of jobs on runners of containers, by digest."""

    name: Image


class Validate(Strict):
    """ReFrame's tags by what made the pipeline run."""

    change: list[str]
    mpi: list[str]
    nightly: list[str]
    weekly: list[str]
    why: str


class CiPolicy(Strict):
    """All of the file."""

    limits: Limits
    jobs: Jobs
    image: JobImage
    validation: Validate = Field(alias="validate")


@cache
def ci_policy() -> CiPolicy:
    """The policy. Raises InvalidInput with every error and its line."""
    return validated(CiPolicy, read_yaml(home().file("policy", "ci.yaml")))
