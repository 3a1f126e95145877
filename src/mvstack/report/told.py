"""What talks and documents say of a partition's speed: the rows of tests/references with a kind.

They stand beside a tree's own results; tests/reframe/references.py reads those that judge.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from mvstack.model.base import Strict, first_error
from mvstack.model.text import Name, Text
from mvstack.model.yamlfile import read_yaml
from mvstack.report.records import Reason
from mvstack.support.errors import InvalidInput
from mvstack.support.home import home
from mvstack.support.units import quantity


class Told(Strict):
    """One figure, ``of`` what it was measured with."""

    metric: Text
    value: float
    unit: Text
    of: dict[Text, Any] = Field(default_factory=dict)


class Saying(Strict):
    """Figures of one benchmark with one library; a chart has none that can be read off.

    ``mpi`` is that library as a release knows it: ``mvapich/3.0a``.
    """

    kind: Literal["measured", "specification", "chart"]
    partition: Name
    library: Text = ""
    version: Text = ""
    benchmark: Text
    mpi: Text = ""
    parameters: dict[Text, Any] = Field(default_factory=dict)
    figures: list[Told] = Field(default_factory=list)
    note: Text = ""
    source: Text


def sayings(path: Path) -> list[Saying]:
    """The rows of ``path`` with a kind. Raises InvalidInput for one with a wrong field."""
    file, found = read_yaml(path), []
    for number, row in enumerate(file.data if isinstance(file.data, list) else []):
        if isinstance(row, dict) and "kind" in row:
            try:
                found.append(Saying.model_validate(row))
            except ValidationError as error:
                raise InvalidInput(first_error(error), file.where((number,))) from None
    return found


def said_of(system: str, partition: str, mpi: str = "") -> tuple[Reason, ...]:
    """A line for each figure, if ``mpi`` is given of that library alone. Charts are named."""
    path = home().files("references").get(f"{system}.yaml")
    said: list[Reason] = []
    for row in sayings(path) if path else []:
        # a historic release may have several of a partition: cpu-openmpi, cpu-mpich
        here = row.partition in (partition, partition.partition("-")[0])
        if not here or mpi not in ("", row.mpi):
            continue
        library = f"{row.library} {row.version}".strip() + _words(row.parameters)
        by = ", ".join(filter(None, [row.kind, library, row.note, row.source]))
        for figure in row.figures:
            what = f"{row.benchmark} {figure.metric}{_words(figure.of)}".replace("_", " ")
            said.append(Reason(what=what, why=f"{quantity(figure.value, figure.unit)}, {by}"))
        if not row.figures:
            said.append(Reason(what=row.benchmark, why=f"without numbers, {by}"))
    return tuple(said)


def _words(of: dict[str, Any]) -> str:
    return f" ({', '.join(f'{name} {value}' for name, value in of.items())})" if of else ""
