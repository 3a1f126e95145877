"""What a plan asks of Spack, read from the plan's plain data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvstack.model.constraint import Constraint, parse
from mvstack.plan.targets import target_for
from mvstack.support.errors import InvalidInput

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

    partition: str
    mpis: tuple[PlannedMpi, ...]
    packages: tuple[PlannedPackage, ...]
    target: str
    compiler: str
    compiler_version: str
    compiler_is_root: bool

    def mpi(self, module: str) -> PlannedMpi | None:
        """The MPI build of that module."""
        return next((mpi for mpi in self.mpis if mpi.module == module), None)


def read_plan(plan: Mapping[str, Any]) -> Planned:
    """What ``plan`` (``Plan.as_dict()`` or plan.json) asks of Spack.

    Packages that Spack has no recipe for (``spack: ""``) are left out. Raises InvalidInput when the
    plan says nothing for Spack, which plans made before there was a Spack builder do not.
    """
    partition = f"{plan.get('system', '?')}/{plan.get('partition', '?')}"
    try:
        compiler = plan["compiler"]
        return Planned(
            partition=partition,
            mpis=tuple(_mpi(raw) for raw in plan["mpi"]),
            packages=tuple(_package(raw) for raw in plan["packages"] if raw["spack"]),
            target=target_for(plan["target"], compiler["name"], compiler["version"]),
            compiler=SPACK_COMPILERS.get(compiler["name"], compiler["name"]),
            compiler_version=compiler["version"],
            compiler_is_root=compiler["origin"] == "spack",
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            "this plan says nothing that a Spack lock file could be held against",
            partition,
            found=f"{type(error).__name__}: {error}",
            todo=f"mvstack render {partition}",
        ) from None


def _mpi(raw: Mapping[str, Any]) -> PlannedMpi:
    spec = raw["spack"]["spec"]
    transport = raw["spack"]["transport"]
    text = transport["spec"] if transport else ""
    return PlannedMpi(raw["module"], spec, parse(spec), text, parse(text) if text else None)


def _package(raw: Mapping[str, Any]) -> PlannedPackage:
    return PlannedPackage(
        f"{raw['name']} {raw['version']}", raw["spack"], parse(raw["spack"]), raw["mpi"]
    )
