"""What a report says, as plain values: no file, no layout and no clock in here.

Times are in seconds, sizes in bytes; ``None`` means that the records do not say.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["rendered", "concretized", "built", "run"]
Result = Literal["pass", "fail", "skip", "missing"]


@dataclass(frozen=True)
class Notice:
    """Something a reader must know first: a damaged record, a failed build, other bytes.

    ``kind`` is "record", "build", "bytes" or "fallback".
    """

    kind: str
    where: str
    message: str
    todo: str = ""


@dataclass(frozen=True)
class Setting:
    """One environment variable that the module sets, with its reason."""

    name: str
    value: str
    why: str
    source: str


@dataclass(frozen=True)
class Reason:
    """Why one part of a choice is as it is. For what was passed over, ``what`` is the build."""

    what: str
    why: str
    source: str


@dataclass(frozen=True)
class Mpi:
    """One MPI build of the plan, and why it was chosen. ``label`` is its module's name."""

    label: str
    product: str
    software: str
    version: str
    device: str
    fabric: str
    gpu: str
    transport: str
    pmi: str
    launcher: str
    launch: str
    settings: tuple[Setting, ...]
    not_upstream: str
    reasons: tuple[Reason, ...]
    state: State

    @property
    def name(self) -> str:
        """Product and version as a person writes them: ``MPICH 4.0.2``."""
        return f"{self.software} {self.version}".strip()


@dataclass(frozen=True)
class Source:
    """One source file: what it is, its SHA-256, where it came from, whose bytes it holds."""

    file: str
    sha256: str
    place: str
    upstream: bool
    note: str


@dataclass(frozen=True)
class Build:
    """One package of the tree: how its latest installation went and how long building it took.

    ``mpi`` is the MPI build that it stands on; ``planned`` is false for what the builder needed
    besides (the compiler's module, a toolchain).
    """

    package: str
    version: str
    module: str
    mpi: str
    planned: bool
    easyconfig: str
    result: str
    state: State
    seconds: float | None
    steps: tuple[tuple[str, float], ...]
    started: str
    host: str
    cores: int | None
    log: str
    sha256: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Figure:
    """One number that a check measured, and what it was held against."""

    name: str
    size: int | None
    value: float | None
    unit: str
    reference: float | None
    allowed: str


@dataclass(frozen=True)
class Case:
    """One check under one MPI build. ``run`` is when, if that was not the latest run."""

    check: str
    description: str
    mpi: str
    ranks: int | None
    result: Result
    why: str
    seconds: float | None
    benchmark: str
    figures: tuple[Figure, ...]
    run: str = ""


@dataclass(frozen=True)
class Skip:
    """What was not run, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Run:
    """One run of the checks.

    ``contents`` are module and content hash of the MPIs that it ran with, where it says so.
    """

    file: str
    started: str
    seconds: float | None
    reframe: str
    tags: tuple[str, ...]
    ignored: tuple[str, ...]
    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]
    contents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Point:
    """One size of one line: the value, its reference, and the range of the earlier runs."""

    size: int
    value: float | None
    reference: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Line:
    """One MPI build in a plot, measured by ``benchmark``.

    ``earlier`` is how many earlier runs the range is taken from.
    """

    label: str
    benchmark: str
    points: tuple[Point, ...]
    earlier: int
    run: str


@dataclass(frozen=True)
class Plot:
    """One figure against message size, a line for each MPI build."""

    key: str
    title: str
    check: str
    name: str
    unit: str
    higher_is_better: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ReportData:
    """All that a report says about one tree."""

    tree: str
    system: str
    partition: str
    release: str
    builder: str
    compiler: str
    machine: tuple[tuple[str, str], ...]
    fallback: str
    notices: tuple[Notice, ...]
    mpi: tuple[Mpi, ...]
    passed_over: tuple[Reason, ...]
    builds: tuple[Build, ...]
    other_sources: tuple[Source, ...]
    latest: Run | None
    runs: tuple[Run, ...]
    cases: tuple[Case, ...]
    skipped: tuple[Skip, ...]
    plots: tuple[Plot, ...]
    setup: str
    module_load: str

    @property
    def counts(self) -> dict[str, int]:
        """How many cases ended how, in the order in which one asks."""
        order: tuple[Result, ...] = ("pass", "fail", "missing", "skip")
        return {name: sum(case.result == name for case in self.cases) for name in order}

    @property
    def build_seconds(self) -> float | None:
        """Time that building took in all; None when nothing says."""
        known = [build.seconds for build in self.builds if build.seconds is not None]
        return sum(known) if known else None

    @property
    def loadable(self) -> bool:
        """Whether there is a module to load: some MPI build is built."""
        return any(mpi.state in ("built", "run") for mpi in self.mpi)

    @property
    def good(self) -> bool:
        """Everything planned is built and every check that ran or should have run passed."""
        built = all(build.state in ("built", "run") for build in self.builds)
        count = self.counts
        return built and count["pass"] > 0 and not count["fail"] and not count["missing"]


def as_json(data: ReportData) -> dict[str, Any]:
    """The report for a script; the keys are the fields of :class:`ReportData` and its parts."""
    return {
        **asdict(data),
        "good": data.good,
        "loadable": data.loadable,
        "counts": data.counts,
        "build_seconds": data.build_seconds,
    }
