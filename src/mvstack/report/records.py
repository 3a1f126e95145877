"""The records of a tree as they were written: each is checked when it is read.

A record may be cut short by a power failure or edited by hand. Nothing here raises for what a file
holds: what cannot be used is left out, and a notice says which file and line, and what to do.
"""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    model_validator,
)
from pydantic import ValidationError as WrongShape

from mvstack.support.units import clean

State = Literal["rendered", "concretized", "built", "run"]
Result = Literal["pass", "fail", "skip", "missing"]


def _text(value: object) -> object:
    return clean(value) if isinstance(value, str) else "" if value is None else value


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Text = Annotated[str, BeforeValidator(_text)]
Number = Annotated[float | None, BeforeValidator(_finite)]


class Record(BaseModel):
    """A part of a record. Times are in seconds, sizes in bytes; ``None`` means: not recorded."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Notice(Record):
    """What a reader must know first: a damaged record, a failed build, other bytes, slower."""

    kind: Literal["build", "record", "bytes", "slower"]
    where: str
    message: str
    todo: str = ""


class Setting(Record):
    """An environment variable that the module sets, with its reason."""

    value: Text = ""
    why: Text = ""
    source: Text = ""


class Reason(Record):
    """Why something is as it is: a part of a choice, a build passed over, a check skipped."""

    what: Text = Field(default="", validation_alias=AliasChoices("what", "build"))
    why: Text = Field(default="", validation_alias=AliasChoices("why", "because"))
    source: Text = ""


class Package(Record):
    """A package of the plan; ``mpi`` is the module of the MPI build that it stands on."""

    name: Text = Field(default="", validation_alias=AliasChoices("package", "software", "name"))
    version: Text = ""
    module: Text = ""
    mpi: Text = ""
    easyconfig: Text = ""
    state: State = "rendered"

    @property
    def title(self) -> str:
        """Name and version as a person writes them: ``MPICH 4.0.2``."""
        return f"{self.name} {self.version}".strip()


class Mpi(Package):
    """An MPI build of the plan."""

    device: Text = ""
    fabric: Text = ""
    gpu: Text = ""
    transport: dict[Text, Text] = {}
    pmi: Text = ""
    launcher: Text = ""
    launch: Text = ""
    environment: dict[Text, Setting] = {}
    tuning: dict[Text, Setting] = {}
    not_upstream: Text = ""
    reasons: tuple[Reason, ...] = ()


class Compiler(Record):
    """The compiler that everything is built with."""

    name: Text = ""
    version: Text = ""
    origin: Text = ""

    @property
    def title(self) -> str:
        """``the system's gcc 12.2.0``."""
        name = f"{self.name} {self.version}".strip()
        return f"the {self.origin}'s {name}" if name and self.origin else name


class Plan(Record):
    """What the tree is to hold."""

    system: Text = ""
    partition: Text = ""
    release: Text = ""
    builder: Text = ""
    tree: Text = ""
    os: Text = ""
    target: Text = ""
    cores: int | None = None
    compiler: Compiler = Field(default_factory=Compiler)
    fallback: Text = ""
    mpi: tuple[Mpi, ...] = ()
    packages: tuple[Package, ...] = ()
    passed_over: tuple[Reason, ...] = ()


class Source(Record):
    """A source file. One that does not say whose bytes it holds is not taken for upstream's."""

    file: Text = ""
    sha256: Text = ""
    place: Text = ""
    upstream: bool = Field(default=False, strict=True)
    note: Text = ""


class Build(Package):
    """A package of the tree, as its latest installation left it.

    ``planned`` is false for what the builder needed besides (a compiler's module, a toolchain).
    """

    result: Text = "not built yet"
    seconds: Number = None
    steps: dict[Text, FiniteFloat] = {}
    started: Text = ""
    host: Text = ""
    cores: int | None = None
    log: Text = ""
    sources: tuple[Source, ...] = ()
    planned: bool = False


class Figure(Record):
    """A number that a check measured, and what it was held against."""

    name: Text = ""
    size: int | None = None
    value: Number = None
    unit: Text = ""
    reference: Number = None
    allowed: Text = ""


class Case(Record):
    """A check under one MPI build. ``run`` is when, if that was not the latest run."""

    check: Text = ""
    description: Text = ""
    mpi: Text = ""
    ranks: int | None = None
    result: Result
    why: Text = ""
    seconds: Number = None
    benchmark: Text = ""
    figures: tuple[Figure, ...] = ()
    run: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_success(cls, row: Any) -> Any:
        if not isinstance(row, dict) or row.get("result") in get_args(Result):
            return row
        why = f"the record says {row.get('result')!r}, which is no result. {row.get('why', '')}"
        return {**row, "result": "missing", "why": why.strip()}

    @property
    def title(self) -> str:
        """The check and the MPI build that it ran with."""
        return f"{self.check} with {self.mpi}" if self.mpi else self.check


class Run(Record):
    """A run of the checks. ``contents`` is the content hash of each MPI's module it ran with."""

    file: Text = ""
    started: Text = ""
    seconds: Number = None
    reframe: Text = ""
    tags: tuple[Text, ...] = ()
    ignored: tuple[Text, ...] = ()
    cases: tuple[Case, ...] = ()
    skipped: tuple[Reason, ...] = ()
    slower: tuple[Reason, ...] = ()
    contents: dict[Text, Text] = {}


def when(stamp: str) -> datetime | None:
    """A recorded time; one without a zone is taken as UTC; None when it is not a time."""
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def began(run: Run) -> tuple[datetime, str]:
    """What puts runs in their order; those that do not say when come before."""
    return when(run.started) or datetime.min.replace(tzinfo=UTC), run.file


R = TypeVar("R", bound=Record)


_INSTALL = "run `mvstack install`: it writes this record"
_TEST = "run `mvstack test`"


class Reader:
    """Reads records below one folder and keeps the notices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notices: list[Notice] = []

    def plan(self) -> Plan:
        """The plan; an empty one when it cannot be read."""
        return self._document(Plan, "plan.json", _INSTALL) or Plan()

    def rows(self, kind: type[R], name: str) -> list[R]:
        """Every row of a file, the oldest first."""
        rest = "the other lines are used as they are"
        text = self._read(name, _INSTALL) or ""
        rows = [
            self._parse(kind, line, f"{name}:{count}", rest)
            for count, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        ]
        return [row for row in rows if row is not None]

    def runs(self) -> list[Run]:
        """Every run of the checks, the oldest first."""
        names = sorted(path.name for path in self.folder.glob("results/*.json"))
        if not names:
            self._notice("results/", "holds no results: no check has been run", _TEST)
        read = [
            run.model_copy(update={"file": clean(name)})
            for name in names
            if (run := self._document(Run, f"results/{name}", _TEST))
        ]
        return sorted(read, key=began)

    def _notice(self, where: str, message: str, todo: str) -> None:
        said = Notice(kind="record", where=clean(where), message=clean(message), todo=todo)
        self.notices.append(said)

    def _document(self, kind: type[R], name: str, todo: str) -> R | None:
        text = self._read(name, todo)
        return None if text is None else self._parse(kind, text, name, todo)

    def _read(self, name: str, todo: str) -> str | None:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            self._notice(name, "is not there", todo)
        except OSError as error:
            self._notice(name, f"cannot be read: {error.strerror or error}", todo)
        return None

    def _parse(self, kind: type[R], text: str, where: str, todo: str) -> R | None:
        try:
            return kind.model_validate(json.loads(text))
        except WrongShape as error:
            first = error.errors()[0]
            said = f"{'.'.join(map(str, first['loc'])) or 'all of it'}: {first['msg']}"
        except RecursionError:
            said = "nested too deeply"
        except ValueError as error:
            said = str(error)
        self._notice(where, f"is damaged ({said})", todo)
        return None
