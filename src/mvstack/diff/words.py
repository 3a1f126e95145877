"""A comparison as text for a person and as data for a script. Pure."""

from __future__ import annotations

from typing import Any

from mvstack.diff.compare import Change, Difference

MARKS = {"added": "+", "removed": "-", "changed": "~"}


def as_data(revision: str, differences: list[Difference]) -> dict[str, Any]:
    """``changes`` says whether anything is rebuilt anywhere."""
    return {
        "against": revision,
        "changes": any(one.changes for one in differences),
        "partitions": {one.name: one.as_dict() for one in differences},
    }


def as_text(revision: str, differences: list[Difference]) -> str:
    """A paragraph for each partition that changes, and a last line for the others."""
    lines: list[str] = []
    for one in differences:
        if one.changes:
            lines += [_head(one), *(_line(change) for change in one.changes)]
        lines += [f"  note: {one.name}: {note}" for note in one.notes]
    same = [one.name for one in differences if not one.changes]
    if len(same) == len(differences):
        lines.append(f"nothing is rebuilt against {revision}: {', '.join(same)}")
    elif same:
        lines.append(f"nothing is rebuilt for {', '.join(same)}")
    return "\n".join(lines)


def _head(one: Difference) -> str:
    counts = [f"{len(one.of(what))} {what}" for what in MARKS if one.of(what)]
    mpi = "the MPI is rebuilt" if one.mpi else "the MPI stays"
    return f"{one.name} ({one.builder}, by {one.by}): {mpi}; {', '.join(counts)}"


def _line(change: Change) -> str:
    why = f": {'; '.join(change.why)}" if change.why else ""
    return f"  {MARKS[change.what]} {change.name}{why}"
