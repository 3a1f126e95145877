"""The gates: what a Spack lock file must be before anything is installed, with reasons.

What each gate does is code (``run``); why it is there, and the packages,
versions and variants that it knows, are data: environments/policy/gates.yaml.
"""

from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from mvstack.model.base import Reasoned, Strict, validated
from mvstack.model.constraint import Spec
from mvstack.model.text import Name, Text
from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

GateId = Literal[
    "roots",
    "one-mpi",
    "planned-mpi",
    "device",
    "pmi",
    "process-manager",
    "variant",
    "transport",
    "compiler",
    "deprecated",
    "solver",  # those before it are of planned packages, those from here on of every lock
    "hash",
    "os",
    "target",
    "asked",
    "default",
    "external",
    "flags",
    "dependencies",
    "recipe",
    "unique",
    "known-bad",
]
GATES: tuple[str, ...] = get_args(GateId)


class Gate(Reasoned):
    """One gate: what it asks, and why."""

    asks: Text


class Named(Reasoned):
    """Package names, with the reason why these."""

    packages: Annotated[list[Text], Field(min_length=1)]


class MpiVariant(Strict):
    """A variant of an MPI and the gate that it belongs to.

    ``exact``: a value beyond the planned ones breaks it too, as a second device would.
    """

    gate: Literal["device", "pmi", "process-manager"]
    exact: bool
    why: Text


class Unique(Reasoned):
    """Packages of which there may be one; within one root, or in the whole environment."""

    packages: Annotated[list[Text], Field(min_length=1)]
    within: Literal["root", "environment"]


class KnownBad(Reasoned):
    """What must not be installed: a spec that no package may satisfy, and one that passes."""

    id: Name
    spec: Annotated[Spec, Field(min_length=1)]
    instead: Annotated[Spec, Field(min_length=1)]


class Gates(Strict):
    """gates.yaml."""

    gates: dict[GateId, Gate]
    mpis: Named
    mpi_variants: dict[Name, MpiVariant]
    unique: list[Unique]
    known_bad: list[KnownBad]

    @model_validator(mode="after")
    def _every_gate(self) -> Self:
        missing = [name for name in GATES if name not in self.gates]
        if missing:
            raise ValueError(f"gates: there is no {', '.join(missing)}; each gate has its reason")
        return self


def load_gates(path: Path | None = None) -> Gates:
    """environments/policy/gates.yaml; InvalidInput with every error of it."""
    return validated(Gates, read_yaml(path or home().file("policy", "gates.yaml")))
