"""What talks and documents say of a partition's speed: the rows of tests/references with a kind.

They stand beside a tree's own results. Rows without a kind judge: tests/reframe/references.py reads
them; here they are checked.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from mvstack.model.base import EMPTY_LIST, Strict, first_error
from mvstack.model.load import load_system, system_names
from mvstack.model.text import Name, Text
from mvstack.model.yamlfile import read_yaml
from mvstack.report.records import Reason
from mvstack.support.errors import InvalidInput, relative
from mvstack.support.home import home
from mvstack.support.units import quantity
from mvstack.support.words import listed, nearest

Word = Annotated[Text, Field(min_length=1)]


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
    figures: list[Told] = EMPTY_LIST
    note: Text = ""
    source: Text


class Reference(Strict):
    """A figure that results are held against, ``below`` and ``above`` as parts of it."""

    partition: Name
    mpi: Word
    figure: Word
    size: Annotated[int, Field(ge=0)] | None = None
    value: Annotated[float, Field(gt=0)]
    unit: Word
    below: Annotated[float, Field(ge=0)] | None
    above: Annotated[float, Field(ge=0)] | None
    source: Word


def sayings(path: Path) -> list[Saying]:
    """The rows of ``path`` with a kind. Raises InvalidInput for a row with a wrong field."""
    file, found = read_yaml(path), list[Saying]()
    if not isinstance(file.data, list | None):
        raise InvalidInput("a list of rows is expected", file.where(()))
    for number, row in enumerate(file.data or []):
        try:
            if isinstance(row, dict) and "kind" in row:
                found.append(Saying.model_validate(row))
            else:
                Reference.model_validate(row)
        except ValidationError as error:
            raise InvalidInput(first_error(error), file.where((number,))) from None
    return found


def check_references(path: Path) -> None:
    """Refuse figures of a system or of partitions that there are not."""
    if path.stem not in (known := system_names()):
        close = nearest(path.stem, known)
        todo = "call the file after the system (`mvstack list systems`)"
        what = f"there is no system {path.stem}"
        raise InvalidInput(what, relative(path), nearest=close, todo=todo)
    system = load_system(path.stem)
    there, file = system.partitions, read_yaml(path)
    sayings(path)
    for number, row in enumerate(file.data or []):
        if system.discover or "kind" in row:
            continue
        name = row["partition"]
        # a historic release may have several of a partition: cpu-openmpi, cpu-mpich
        if any(f"{name}-".startswith(f"{one}-") for one in there):
            continue
        what, where = f"system {path.stem} has no partition {name}", file.where((number,))
        raise InvalidInput(what, where, allowed=listed(there), nearest=nearest(name, there))


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
