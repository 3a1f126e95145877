"""docs/mpich-suite.md: what MPICH's own tests said of each MPI, and why the known ones fail."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from mvstack.model.yamlfile import read_yaml
from mvstack.render.templates import template
from mvstack.report.seen import read_rows
from mvstack.support.home import DATA

LAB = DATA / "tests" / "lab"


class Run(BaseModel):
    """A line of mpich-suite-record.jsonl: one MPI, all folders together.

    ``known`` and ``new`` have the tests that failed, each with its state; ``not_run`` the folders
    that were left out, each with the reason; ``skips`` why tests were skipped, and how many.
    """

    model_config = ConfigDict(frozen=True)

    mpi: str
    programs: str
    lists: str
    source: str
    set: list[str]
    date: str
    commit: str
    cores: int
    tests: int
    passed: int
    skipped: int
    failed: int
    timed_out: int
    not_built: int
    passed_again: int
    oversubscribed: int
    skips: dict[str, int]
    known: dict[str, str]
    new: dict[str, str]
    not_run: dict[str, str]


class Known(BaseModel):
    """A row of mpich-suite-known.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    test: str
    mpi: str | list[str]
    whose: Literal["mpich", "mvapich", "suite", "machine"]
    reason: str
    sometimes: bool = False

    @property
    def mpis(self) -> str:
        """The MPIs in words."""
        return self.mpi if isinstance(self.mpi, str) else ", ".join(self.mpi)


def suite_page() -> str:
    """The page. Raises InvalidInput when the record or a row cannot be read."""
    path = LAB / "mpich-suite-known.yaml"
    known = TypeAdapter(list[Known]).validate_python(read_yaml(path).data or [])
    runs = read_rows(LAB / "mpich-suite-record.jsonl", Run, "tests/lab/mpich-suite")
    return template("mpich-suite.md", runs=runs, known=known)
