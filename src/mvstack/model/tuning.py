"""What may be tuned, what was found by measuring on one machine, and what may never be set."""

import re
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from mvstack.model.base import EMPTY_LIST, Reasoned, Strict, validated
from mvstack.model.rules import When
from mvstack.model.text import ModuleName, Text, Variable
from mvstack.model.yamlfile import read_yaml
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput
from mvstack.support.home import home

TABLES = "collectives/"  # a value that begins so is a file of a folder of tuning
UNTUNED = "MVAPICH_STACK_UNTUNED"  # set to 1 before a module is loaded, it sets nothing tuned


class Tunable(Reasoned):
    """A variable and the values that are tried beside leaving it alone, for builds of ``when``.

    Each value is tried alone, and with those of ``also``; ``default`` where another is set, and
    none where messages do not go all the ways of ``over``, or an operation in it is not measured.
    """

    variable: Variable
    when: When = Field(default_factory=When)
    over: list[Text] = EMPTY_LIST
    values: list[Text] = EMPTY_LIST
    default: Text | None = None
    also: dict[Variable, Text] = Field(default_factory=dict)

    def tried(self, set_: str | None, ways: set[str]) -> list[str]:
        """The values that are tried where it is ``set_`` and messages go these ``ways``."""
        values = [*self.values, *([self.default] if self.default and set_ is not None else [])]
        return [one for one in values if one != set_] if {*self.over} <= ways else []


class Never(Reasoned):
    """Values of a variable that no tuned setting has: from ``at_least`` on, or these."""

    variable: Variable
    at_least: int | None = None
    values: list[Text] = EMPTY_LIST

    def forbids(self, variable: str, value: str) -> bool:
        """Whether it is one of them."""
        found = re.fullmatch(r"(\d+)([kmg]?)b?", value.lower().replace("inf", "99999g"))  # as UCX
        size = int(found[1]) << 10 * " kmg".index(found[2] or " ") if found else 0
        large = self.at_least is not None and size >= self.at_least
        alike = {*value.split(",")} in [{*one.split(",")} for one in self.values]
        return variable == self.variable and (large or alike)


class Tuning(Strict):
    """tuning.yaml."""

    tuning: list[Tunable]
    never: list[Never]

    def forbidden(self, settings: dict[str, str]) -> str:
        """Why one of the ``settings`` may not be; "" where all may."""
        rows = (row for row in self.never for one in settings.items() if row.forbids(*one))
        return next((f"{row.variable}: {row.why} ({row.source})" for row in rows), "")

    @model_validator(mode="after")
    def _tries_nothing_forbidden(self) -> Self:
        known = {row.variable: row.values for row in self.tuning}
        for row in self.tuning:
            for name, value in row.also.items():
                if value not in known.get(name, []):
                    raise ValueError(f"tuning: {row.variable}: no row has {name}={value} of `also`")
            for value in (*row.values, row.default or ""):
                if why := self.forbidden({row.variable: value}):
                    raise ValueError(f"tuning: {row.variable}={value} is among `never`: {why}")
        return self


class Gain(Strict):
    """How many times as fast, and the interval in which that lies."""

    value: float
    low: float
    high: float


class Found(Reasoned):
    """A tuned variable: its value, and how many times as fast the MPI is as without it."""

    value: Text
    gain: Gain


class Rejected(Strict):
    """Settings that were tried, and why they were not kept."""

    settings: dict[Variable, Text]
    why: Text


class Tuned(Strict):
    """What `mvstack tune` found for one MPI build on one partition."""

    mpi: ModuleName
    date: Text
    machine: dict[Text, Text]
    measured: dict[Text, Text]
    sets: dict[Variable, Found]
    gain: Gain | None = None
    by: dict[Text, Gain] = Field(default_factory=dict)
    tried: int
    rejected: list[Rejected] = EMPTY_LIST


def load_tuning() -> Tuning:
    """environments/policy/tuning.yaml, or the site's. Raises InvalidInput."""
    return validated(Tuning, read_yaml(home().file("policy", "tuning.yaml")))


def table(value: str) -> Path | None:
    """The file of which algorithm for which sizes that a value names; None for other values."""
    return home().file("tuning", value) if value.startswith(TABLES) else None


def tuned_file(folder: Path, system: str, partition: str, module: str) -> Path:
    """Where what was found for an MPI build stands below a folder of tuning."""
    return folder / system / partition / f"{module.replace('/', '-')}.yaml"


def tuned(system: str, partition: str, module: str) -> dict[str, dict[str, Any]]:
    """The variables that were tuned for an MPI build: value, why and source of each; {} for none.

    A value that names a table is the table's place below a tree's `rendered`, by its content.
    Raises InvalidInput for a file that is of another build, or sets what may never be set.
    """
    places = (tuned_file(one, system, partition, module) for one in home().folders("tuning"))
    if (path := next(filter(Path.is_file, places), None)) is None:
        return {}
    data = validated(Tuned, read_yaml(path))
    if data.mpi != module:
        raise InvalidInput("mpi: a file is of one build", data.at("mpi"), allowed=module)
    if why := load_tuning().forbidden({name: one.value for name, one in data.sets.items()}):
        raise InvalidInput("a value that may never be set", data.at("sets"), because=why)
    of = data.machine.get("cpu", "this machine")
    rows = {
        name: {
            "value": one.value,
            "why": f"{one.gain.value:.2f} times as fast, measured on {of}, {data.date}; {one.why}",
            "source": one.source,
        }
        for name, one in data.sets.items()
    }
    for row in rows.values():
        if path := table(row["value"]):
            if not path.is_file():
                todo = "a site's is in its folder tuning/collectives"
                raise InvalidInput(f"{row['value']}: no such file", data.at("sets"), todo=todo)
            content = hashes.of(path.read_text())[:12]
            row |= {"table": row["value"], "value": f"tuning/{content}.json"}
    return rows
