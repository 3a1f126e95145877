"""How far each spec of our recipes came on a machine, as the tool below tests/spack recorded it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mvstack.model.constraint import parse
from mvstack.model.spack_lock import Value
from mvstack.support.errors import InvalidInput, MvstackError, Problem, relative
from mvstack.support.home import DATA
from mvstack.support.words import listed, nearest

RECORD = DATA / "spack-repo" / "record.jsonl"
# In this order each takes the one before for granted.
STATES = ("refused", "concretizes", "built", "run")
FAILED = ""


@dataclass(frozen=True)
class Row:
    """One line: a concrete root and how far it came; ``words`` are its variants' values.

    ``state`` is "" for a spec that neither concretized nor was to be refused. ``outcome`` says what
    went otherwise than it should have.
    """

    id: str
    package: str
    version: str
    words: frozenset[str]
    state: str
    spec: str
    seconds: float | None
    packages: int | None
    printed: str
    source: str
    outcome: str


def read_record(path: Path = RECORD) -> list[Row]:
    """The record's rows; none when there is no record yet.

    Raises InvalidInput with every line that is not as it should be.
    """
    if not path.is_file():
        return []
    rows, problems = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            rows.append(_row(json.loads(line)))
        except (ValueError, TypeError, KeyError, MvstackError) as error:
            problems.append(
                Problem(
                    f"this is no row of the record: {error}",
                    f"{relative(path)}:{number}",
                    todo="the tool below tests/spack writes it; do not edit it by hand",
                )
            )
    if problems:
        raise InvalidInput(*problems)
    return rows


def _row(data: dict[str, object]) -> Row:
    state, spec = str(data["state"]), str(data["spec"] or data["asked"])
    if state not in (*STATES, FAILED):
        raise ValueError(f"state {state}: use {listed(STATES)} (nearest {nearest(state, STATES)})")
    root = parse(spec)
    version = root.versions[0].lstrip("=") if root.versions else ""
    seconds, packages = data.get("seconds"), data.get("packages")
    return Row(
        id=str(data.get("id", "")),
        package=root.name,
        version=version,
        words=frozenset(
            word for key, value in root.variants.items() for word in _words(key, value)
        ),
        state=state,
        spec=spec,
        seconds=float(seconds) if isinstance(seconds, (int, float)) and seconds else None,
        packages=packages if isinstance(packages, int) and packages else None,
        printed=str(data.get("printed") or ""),
        source="" if data.get("source") == "upstream" else str(data.get("source") or ""),
        outcome=str(data.get("outcome") or ""),
    )


def _words(key: str, value: Value) -> list[str]:
    if isinstance(value, bool):
        return [f"{'+' if value else '~'}{key}"]
    values = [value] if isinstance(value, str) else list(value)
    return [f"{key}={one}" for one in values]
