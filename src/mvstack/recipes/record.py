"""How far each spec of our recipes came on a machine, as the tool below tests/spack recorded it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mvstack.model.constraint import parse
from mvstack.model.spack_lock import Value
from mvstack.support.errors import InvalidInput, MvstackError, Problem, relative
from mvstack.support.home import DATA
from mvstack.support.words import listed, nearest

RECORD = DATA / "spack-repo" / "record.jsonl"
# In this order each takes the one before for granted.
STATES = ("refused", "concretizes", "built", "run")
FAILED = ""
T = TypeVar("T")


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
    """The record's rows; see :func:`read_rows`."""
    return read_rows(path, _row, "the tool below tests/spack")


def read_rows(path: Path, row: Callable[[dict[str, Any]], T], writer: str) -> list[T]:
    """The lines of a record, each as ``row`` makes it; none when there is no record yet.

    ``writer`` is the tool that writes it. Raises InvalidInput with every line that is wrong.
    """
    rows, problems = [], []
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(row(json.loads(line)))
        except (ValueError, TypeError, KeyError, MvstackError) as error:
            problems.append(
                Problem(
                    f"not a row of the record: {error}",
                    f"{relative(path)}:{number}",
                    todo=f"{writer} writes it; do not edit it by hand",
                )
            )
    if problems:
        raise InvalidInput(*problems)
    return rows


def _row(data: dict[str, Any]) -> Row:
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
