"""A gate that a lock file does not pass, and how that is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mvstack.model.gates import GateId, Gates
from mvstack.support.errors import CheckFailed, Problem


@dataclass(frozen=True)
class Broken:
    """``package`` breaks the gate ``rule``: what was found, why that is no good, what passes.

    ``row`` is the id of the row of a list when the gate has one. ``passes`` is a spec.
    """

    package: str
    rule: str
    found: str
    why: str
    source: str
    passes: str
    row: str = ""

    def as_dict(self) -> dict[str, str]:
        """Plain data, for ``--json``."""
        return {key: value for key, value in asdict(self).items() if value}


def broken(rules: Gates, rule: GateId, package: str, found: str, passes: str) -> Broken:
    """A Broken with the gate's own reason."""
    gate = rules.gates[rule]
    return Broken(package, rule, found, gate.why, gate.source, passes)


SHOWN = 3
"""So many packages of one gate are told in full; of more the names."""


def gates_failed(found: list[Broken], where: str) -> CheckFailed:
    """The error that tells every broken gate; ``where`` is the partition, e.g. expanse/cpu.

    A gate that many packages break (a compiler that is not the planned one) is told for the first
    ones, with the names of the others.
    """
    problems: list[Problem] = []
    by_gate: dict[tuple[str, str], list[Broken]] = {}
    for one in found:
        by_gate.setdefault((one.rule, one.row), []).append(one)
    for (rule, row), same in by_gate.items():
        title = f"gate {rule}{f' ({row})' if row else ''}"
        problems += [
            Problem(
                title,
                f"{where}: {one.package}",
                found=one.found,
                because=f"{one.why} ({one.source})",
                todo=f"this would pass: {one.passes}",
            )
            for one in same[:SHOWN]
        ]
        more = [one.package for one in same[SHOWN:]]
        if more:
            problems.append(
                Problem(f"{title}: {len(more)} more of the same", where, found=", ".join(more))
            )
    return CheckFailed(*problems, outcome="Nothing was installed.")
