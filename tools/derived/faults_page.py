"""docs/doctor.md: what each planted fault was caught by, and in which words, as it was recorded."""

from __future__ import annotations

from collections import defaultdict

from pydantic import BaseModel, ConfigDict

from mvstack.render.templates import template
from mvstack.report.seen import read_rows
from mvstack.support.home import DATA


class Caught(BaseModel):
    """A line of faults-record.jsonl: one fault on one MPI; ``by`` is empty if nothing told it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fault: str
    by: list[str]
    message: str
    mpi: str
    builder: str
    date: str
    commit: str

    @property
    def where(self) -> tuple[str, str]:
        """The MPI and who built it."""
        return self.mpi, self.builder


def faults_page() -> str:
    """The page. Raises InvalidInput when the record cannot be read."""
    record = DATA / "tests" / "data" / "faults-record.jsonl"
    seen = read_rows(record, Caught, "tests/integration/test_reframe_mpi.py")
    builds: dict[tuple[str, str], str] = {}
    faults: dict[str, list[Caught]] = defaultdict(list)
    for row in sorted(seen, key=lambda one: (one.where, one.date)):
        builds[row.where] = row.date  # of the last
        faults[row.fault].append(row)
    by_check = sorted(faults.values(), key=lambda rows: (rows[0].by, rows[0].fault))
    return template("doctor.md", faults=by_check, builds=builds)
