"""What a plan asks of a lock file, and what is said of a lock that is otherwise. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from mvstack.model.constraint import Constraint, parse
from mvstack.model.gates import GateId, Gates
from mvstack.plan.targets import target_for
from mvstack.plan.types import MpiBuild, Plan
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


SPACK_COMPILERS = {
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "intel": "intel-oneapi-compilers-classic",
}
"""Compilers whose package in Spack has another name than the compiler."""


@dataclass(frozen=True)
class PlannedMpi:
    """One MPI build: its module, its spec, and that of the library beneath its device."""

    module: str
    spec: str
    wanted: Constraint
    transport_spec: str = ""
    transport: Constraint | None = None


@dataclass(frozen=True)
class PlannedPackage:
    """One package and the module of the MPI that it stands on, "" when it needs none."""

    title: str
    spec: str
    wanted: Constraint
    mpi: str


@dataclass(frozen=True)
class Planned:
    """The plan as far as a lock file can answer to it."""

    mpis: tuple[PlannedMpi, ...]
    packages: tuple[PlannedPackage, ...]
    target: str
    compiler: str
    compiler_version: str
    compiler_is_root: bool

    def mpi(self, module: str) -> PlannedMpi | None:
        """The MPI build of that module."""
        return next((mpi for mpi in self.mpis if mpi.module == module), None)


def read_plan(plan: Plan) -> Planned:
    """What ``plan`` asks of Spack; packages that Spack has no recipe for are left out."""
    name, version = plan.compiler["name"], plan.compiler["version"]
    return Planned(
        mpis=tuple(map(_mpi, plan.mpi)),
        packages=tuple(
            PlannedPackage(f"{one.name} {one.version}", one.spack, parse(one.spack), one.mpi)
            for one in plan.packages
            if one.spack
        ),
        target=target_for(plan.target, name, version),
        compiler=SPACK_COMPILERS.get(name, name),
        compiler_version=version,
        compiler_is_root=plan.compiler["origin"] == "spack",
    )


def _mpi(build: MpiBuild) -> PlannedMpi:
    spec, transport = build.spack["spec"], build.spack["transport"]
    text = transport["spec"] if transport else ""
    return PlannedMpi(build.module, spec, parse(spec), text, parse(text) if text else None)
