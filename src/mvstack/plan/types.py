"""The types of a plan: what one partition gets in one release, with the reasons."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, TypeVar

T = TypeVar("T")

NOT_OBTAINED = "its source cannot be obtained here"


@dataclass(frozen=True)
class Accepted:
    """Bytes that are not upstream's and that a person accepted on purpose.

    ``sha256`` has the hash of each file in the recipe's order, "" for upstream's own.
    """

    sha256: list[str]
    reason: str


@dataclass(frozen=True)
class Given:
    """What decides a plan beside the files: what a person asks for and what can be obtained here.

    ``accepted`` maps (product or package, version) to bytes; ``unavailable`` names products by
    version, and packages by version or module, whose sources are missing; ``fallback`` allows the
    stand-in of the system `local`. Without a ``profile`` it is that of the partition. Of what goes
    beyond the profile default, ``names`` are taken alone where there are any.
    """

    root: str = ""
    profile: str = ""
    accepted: Mapping[tuple[str, str], Accepted] = field(default_factory=dict)
    unavailable: frozenset[tuple[str, str]] = frozenset()
    fallback: bool = False
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Extent:
    """How much of a release: ``profile``, and of it only ``names`` where there are any.

    Without either it is what the tree was last installed with, or what the partition's file says.
    """

    profile: str = ""
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MpiBuild:
    """One MPI build of a partition: what is built, what its module sets, how it is launched."""

    product: str
    software: str
    version: str
    device: str
    module: str
    fabric: str
    gpu: str
    transport: dict[str, str]
    pmi: str
    launcher: str
    launch: str
    environment: dict[str, dict[str, str]]
    believe: dict[str, Any]
    parameters: dict[str, Any]
    easyconfig: str
    spack: dict[str, Any]
    not_upstream: str
    accepted_sha256: list[str]
    why: str
    source: str
    reasons: list[dict[str, str]] = field(default_factory=list)
    # where the site has it; "" for what is built
    provided: str = ""
    # how the links of a node are used together and alone; {} where there is one
    rails: dict[str, Any] = field(default_factory=dict)
    # the source that nobody can fetch; "" for what can be built
    gone: str = ""
    # what was tuned by measuring: value, why and source by variable; {} for nothing
    tuning: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Package:
    """One package over one MPI build, or over the compiler alone (``mpi`` is "" then).

    ``toolchain`` is the easyconfig of the toolchain that EasyBuild builds it with; ``readers`` is
    the Unix group whose members alone may read a licensed package.
    """

    name: str
    version: str
    title: str
    module: str
    mpi: str
    easyconfig: str
    spack: str
    toolchain: str = ""
    group: str = ""
    licence: str = "open"
    readers: str = ""
    not_upstream: str = ""
    accepted_sha256: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """What one partition gets in one release; ``as_dict`` is the JSON that later steps read."""

    system: str
    partition: str
    title: str
    release: str
    builder: str
    root: str
    tree: str
    os: str
    target: str
    cores: int
    scheduler: str
    access: list[str]
    compiler: dict[str, str]
    mpi: list[MpiBuild]
    packages: list[Package]
    passed_over: list[dict[str, str]]
    externals: list[dict[str, str]] = field(default_factory=list)
    # ReFrame's launcher; its scheduler is above
    starter: str = "local"
    # how a job is submitted, the first lines of its script, its ranks; {} without a scheduler
    job: dict[str, Any] = field(default_factory=dict)
    fallback: str = ""
    profile: str = "default"
    # packages of the profile that this partition does not get, each with the reason
    left_out: list[dict[str, str]] = field(default_factory=list)
    # of the compiler, for the target; "" on the machine that was looked at: as its compiler sees it
    optimization: str = ""
    # software → version that stands beneath the MPI where EasyBuild's compiler is of another
    # generation than the easyconfigs by hand; {} else
    beneath: dict[str, str] = field(default_factory=dict)
    # the packages beyond the profile default that were named; [] for all of the profile
    named: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys in the order in which a person reads them."""
        result = asdict(self)
        for build in result["mpi"]:
            for name in ("provided", "rails", "gone", "tuning"):
                if not build[name]:
                    del build[name]
        for name in ("named", "beneath"):
            if not result[name]:
                del result[name]
        return result


def plan_of(data: dict[str, Any]) -> Plan:
    """The plan that was written as JSON; fields that an older version did not have are empty."""
    mpi = [_filled(MpiBuild, row) for row in data.get("mpi", [])]
    packages = [_filled(Package, row) for row in data.get("packages", [])]
    return _filled(Plan, {**data, "mpi": mpi, "packages": packages})


def _filled(kind: type[T], row: dict[str, Any]) -> T:
    # what was written before a field was known has its default, or nothing
    values: dict[str, Any] = {
        one.name: row.get(one.name, "")
        for one in fields(kind)  # type: ignore[arg-type]
        if one.name in row or (one.default is MISSING and one.default_factory is MISSING)
    }
    return kind(**values)
