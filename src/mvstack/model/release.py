"""A release: a dated, immutable set of packages."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from mvstack.model.base import EMPTY_LIST, Strict
from mvstack.model.constraint import Spec, SpecWords
from mvstack.model.system import Compiler, External, System, Wish
from mvstack.model.text import ModuleName, Name, PackageName, Page, Suffix, Text, Version, matching
from mvstack.model.vocabulary import Builder, ExternalName, GpuKind, Pmi, Product, Profile
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.words import listed

Licence = Literal["open", "registration", "commercial"]
"""Whether anybody may fetch it, has to register first, or has to buy it."""

Group = Literal[
    "libraries",
    "tools",
    "molecular dynamics",
    "weather",
    "materials and chemistry",
    "life science",
    "astrophysics and CFD",
    "earthquake",
    "machine learning",
    "benchmarks",
]


# Rows compare it; 2.3.7-1 is of MVAPICH2.
OF_MPI = r"[0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]*)?(?:-[0-9]+)?(?:\+[a-z0-9]+(?:[._-][a-z0-9]+)*)?"


class MpiVersion(Strict):
    """One product's version, with the reason; ``gone`` from the page that had which file."""

    version: Annotated[str, matching(OF_MPI, "a version such as 4.0 or 4.0+mysite")]
    why: Text
    source: Text = ""
    gone: Text = ""


class Variant(Strict):
    """One choice within a package, by the builder's own word, with the reason for it."""

    what: Text
    why: Text


class GpuVariant(Strict):
    """What Spack is asked for besides with GPUs, over an MPI that takes their buffers.

    ``{cuda_arch}`` stands for the number of the partition's GPU; ``otherwise`` is added elsewhere.
    """

    spack: SpecWords
    otherwise: SpecWords = ""
    why: Text


class Where(Strict):
    """Where a package applies; empty: everywhere.

    On which GPUs, by which builder, from which GCC on, and beneath which generations of EasyBuild's
    toolchains, where EasyBuild builds the compiler. With ``transport`` it is what the MPI stands
    on where a partition over the system's compiler asks for it (`mpi: {transport: built}`).
    """

    gpu: list[GpuKind] = EMPTY_LIST
    builder: Literal["", "easybuild", "spack"] = ""
    gcc: Annotated[str, StringConstraints(pattern=r"^(\d+(\.\d+)*)?$", max_length=20)] = ""
    generations: list[Version] = EMPTY_LIST
    transport: Literal["", "built"] = ""


class Package(Strict):
    """One package: what it is, from which profile on it is installed, the reason for its pin.

    Packages stand in the order of building. Of those with one ``instead`` word, a partition gets
    the first whose source is available. ``toolchain`` is what EasyBuild builds it with: ``mvfoss``
    and ``gmvapich`` stand for the like over the partition's MPI; empty when there is no easyconfig,
    which ``easybuild`` then explains. ``spack`` is the spec by which Spack is asked for it; empty
    when Spack has none. ``page`` is where it comes from, or where a licensed file is had. The
    version stands in one place: what ``module`` and ``spack`` do not say of it follows from there.
    """

    name: PackageName
    version: Version
    title: Text
    group: Group = "benchmarks"
    profile: Profile = "default"
    toolchain: Literal["", "gcc", "gmvapich", "mvfoss"] = "gmvapich"
    suffix: Suffix = ""
    easybuild: Text = ""
    only_over: list[Product] = EMPTY_LIST
    instead: Literal[""] | Name = ""
    module: ModuleName = ""
    spack: Spec = ""
    variants: list[Variant] = EMPTY_LIST
    gpu: GpuVariant | None = None
    where: Where = Field(default_factory=Where)
    licence: Licence = "open"
    terms: Text = ""
    page: Page = ""
    why: Text = ""
    source: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _of_one_version(cls, row: Any) -> Any:
        name, version = (row.get("name"), row.get("version")) if isinstance(row, dict) else ("", "")
        if not (isinstance(name, str) and isinstance(version, str) and version):
            return row  # its own errors are told
        made = {"module": f"{name}/{version}{row.get('suffix', '')}".lower(), **row}
        if isinstance(spec := row.get("spack"), str) and spec and "@" not in spec.split()[0]:
            first, *words = spec.split(" ", 1)
            made["spack"] = " ".join([f"{first}@={version}", *words])
        return made

    def not_built_by(self, builder: str, toolchains: Iterable[str]) -> str:
        """Why ``builder`` cannot build it with one of ``toolchains``; "" where it can."""
        if builder == "spack":
            return "" if self.spack else "Spack has no recipe of it"
        if not self.toolchain:
            return f"no easyconfig: {self.easybuild}"
        if self.toolchain not in toolchains:
            return f"there is no toolchain {self.toolchain} over this MPI"
        return ""

    @property
    def builders(self) -> list[str]:
        """The builders that build it."""
        both = {"easybuild": self.toolchain, "spack": self.spack}
        return [name for name, there in both.items() if there and self.where.builder in ("", name)]

    @property
    def by_easyconfig(self) -> bool:
        """Whether EasyBuild builds it; of some packages a row is for Spack alone."""
        return "easybuild" in self.builders


ReleaseName = Annotated[
    str, matching(r"\d{4}\.(0[1-9]|1[0-2])", "a year and month, such as 2026.11,", 7)
]
Status = Literal["development", "current", "deprecated", "removed", "historic"]


class Then(Strict):
    """A partition as it was when a talk measured it: what differs from the system's file of today.

    It is called as it is there, with a dash and a word after it where the talk had several.
    """

    title: Text = ""
    os: Name | None = None
    pmi: Pmi | None = None
    compiler: Compiler | None = None
    externals: dict[ExternalName, External] | None = None
    mpi: Wish
    source: Text


class Release(Strict):
    """For each MPI product the versions in order of preference; a historic one's ``systems``."""

    name: ReleaseName
    status: Status
    title: Text = ""
    source: Text = ""
    builder: Builder | None = None
    systems: dict[Name, dict[Name, Then]] = Field(default_factory=dict)
    mpi: dict[Product, list[MpiVersion]]
    packages: list[Package] = EMPTY_LIST

    @model_validator(mode="after")
    def _has_an_mpi(self) -> Self:
        if not any(self.mpi.values()):
            raise ValueError("mpi: no version of any MPI is named")
        return self

    def then(self, system: System) -> System:
        """``system`` as it was for this release; as it is for one that names no systems."""
        if not self.systems:
            return system
        if system.name not in self.systems:
            what = f"release {self.name} is of {listed(self.systems)}, not of {system.name}"
            raise Refused(what, todo="name one of these, or another release")
        changed = {}
        for name, was in self.systems[system.name].items():
            there = [one for one in system.partitions if name == one or name.startswith(f"{one}-")]
            if not there:
                what = f"{name}: system {system.name} has no partition of this name"
                where, allowed = self.at("systems", system.name, name), listed(system.partitions)
                raise InvalidInput(what, where, allowed=f"{allowed}, or with a dash and a word")
            said = {field: value for field, value in was if value and field != "source"}
            changed[name] = system.partitions[max(there, key=len)].model_copy(update=said)
        update = {"partitions": changed, "builder": self.builder or system.builder}
        return system.model_copy(update=update)


class Addition(Strict):
    """A site's release file that adds to another release; what it leaves out is as there.

    Its versions of an MPI are tried before the other's, its packages are built after them.
    """

    name: ReleaseName
    extends: ReleaseName
    status: Status | None = None
    title: Text = ""
    mpi: dict[Product, list[MpiVersion]] = Field(default_factory=dict)
    packages: list[Package] = EMPTY_LIST
