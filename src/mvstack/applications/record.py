"""How far each package came on a machine, by each builder, as it was seen there.

`easyconfigs/record.jsonl` has one JSON object a line:

    package, version, builder (easybuild or spack), mpi (module, or spec), date
    state     failed | resolves | built | run; each takes the one before for granted
    of        what it is true of: the hash of the easyconfig, or the spec; a recipe that changed
              since then has nothing to show
    seconds   of building; size_mb of what is installed; both null where they were not seen
    checks    what the checks said; figure: what one of them measured
    bytes     "" for upstream's, else whose
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field, ValidationError

from mvstack.model.base import Strict
from mvstack.plan import easyconfigs
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.home import DATA

RECORD = DATA / "easyconfigs" / "record.jsonl"
STATES = ("failed", "resolves", "built", "run")


class Row(Strict):
    """One line of the record, see above."""

    package: str
    version: str
    builder: str = Field(pattern="^(easybuild|spack)$")
    mpi: str
    date: str
    state: str = Field(pattern=f"^({'|'.join(STATES)})$")
    of: str
    seconds: float | None = None
    size_mb: int | None = None
    checks: str = ""
    figure: str = ""
    bytes: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """A newer row of the same key takes the place of an older one."""
        return (self.package, self.version, self.builder, self.mpi)


def read_record(path: Path = RECORD) -> list[Row]:
    """The rows; none where there is no record. Raises InvalidInput with every line that is none."""
    if not path.is_file():
        return []
    rows, problems = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            rows.append(Row(**json.loads(line)))
        except (ValueError, TypeError, ValidationError) as error:
            problems.append(
                Problem(
                    f"this is no row of the record: {error}",
                    f"{relative(path)}:{number}",
                    todo="tests/apps/record writes it; do not edit it by hand",
                )
            )
    if problems:
        raise InvalidInput(*problems)
    return rows


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """``old`` with ``new`` in place of what is older, in order of names."""
    rows = {row.key: row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows, key=lambda key: tuple(part.lower() for part in key))]


def written(rows: Iterable[Row]) -> str:
    """The rows as the record's text."""
    return "".join(json.dumps(row.model_dump(), ensure_ascii=False) + "\n" for row in rows)


def hash_of(easyconfig: str) -> str:
    """What a row of EasyBuild is true of: what the hand-written easyconfig says, not its comments.

    The same over every MPI; "" where there is none.
    """
    path = easyconfigs.source_of(easyconfig, easyconfigs.index())
    return hashes.of(hashes.normalised(path.read_text()))[:16] if path else ""
