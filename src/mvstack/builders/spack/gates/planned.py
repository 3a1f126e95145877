"""What a plan asks of a lock file, and what is said of a lock that is otherwise. Pure."""

from dataclasses import dataclass
from typing import Any

from mvstack.model.constraint import Constraint, parse
from mvstack.model.gates import GateId, Gates
from mvstack.model.spack import spack_pins
from mvstack.model.spack_lock import Lock, Node
from mvstack.plan.targets import target_for
from mvstack.plan.types import Plan
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


SHOWN = 3
"""So many packages of one gate are told in full; of more the names."""


def gates_failed(found: list[Broken], where: str) -> CheckFailed:
    """The error that tells every broken gate; ``where`` is the partition, e.g. expanse/cpu.

    A gate that many packages break (a compiler that is not the planned one) is told for the first
    ones, with the names of the others.
    """
    problems: list[Problem] = []
    by_gate: dict[str, list[Broken]] = {}
    for one in found:
        title = f"gate {one.rule}{f' ({one.row})' if one.row else ''}"
        by_gate.setdefault(title, []).append(one)
    for title, same in by_gate.items():
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
        if more := [one.package for one in same[SHOWN:]]:
            told = f"{title}: {len(more)} more of the same"
            problems.append(Problem(told, where, found=", ".join(more)))
    return CheckFailed(*problems, outcome="Nothing was installed.")


@dataclass(frozen=True)
class Wanted:
    """A root that a plan asks for: an MPI, or a package over the MPI of the module ``mpi``.

    ``key`` tells it in the plan. ``passes`` is the spec by which it is as planned, ``transport``
    that of the library beneath an MPI's device.
    """

    key: str
    title: str
    passes: str
    spec: Constraint
    mpi: str = ""
    transport: str = ""


def request(plan: Plan, compiler: bool) -> dict[str, Any]:
    """What spack-repo/verify.py is told of a plan, for its compiler's lock or for the stack's."""
    name, version = plan.compiler["name"], plan.compiler["version"]
    every = f"os={spack_pins().os_of(plan.os)}"
    if compiler:
        return {"specs": [], "all": every, "compiler": ""}
    beneath = [(build.spack["spec"], build.spack["transport"]) for build in plan.mpi]
    specs = [f"{spec} ^{under['spec']}" if under else spec for spec, under in beneath]
    specs += [one.spack for one in plan.packages if one.spack]
    every += f" target={target_for(plan.target, name, version)}"
    return {"specs": specs, "all": every, "compiler": f"{name}@={version}"}


class Case:
    """A lock file, what a plan asks of it, and the rules by which it is judged."""

    def __init__(self, lock: Lock, plan: Plan, rules: Gates) -> None:
        self.lock, self.rules = lock, rules
        self.exact = frozenset(name for name, row in rules.mpi_variants.items() if row.exact)
        specs = {build.module: build.spack["spec"] for build in plan.mpi}
        self.mpis = [
            Wanted(
                build.module,
                build.module,
                build.spack["spec"],
                parse(build.spack["spec"]),
                transport=(build.spack["transport"] or {}).get("spec", ""),
            )
            for build in plan.mpi
        ]
        self.packages = [
            Wanted(
                f"{one.mpi} {one.module}".lstrip(),
                f"{one.name} {one.version}" + (f" over {one.mpi}" if one.mpi else ""),
                one.spack + (f" ^{specs[one.mpi]}" if one.mpi in specs else ""),
                parse(one.spack),
                one.mpi,
            )
            for one in plan.packages
            if one.spack  # else Spack has no recipe for it
        ]

    def broken(self, rule: GateId, package: Node | str, found: str, passes: str) -> Broken:
        """A Broken with the gate's own reason."""
        gate = self.rules.gates[rule]
        return Broken(str(package), rule, found, gate.why, gate.source, passes)
