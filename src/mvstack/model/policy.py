"""The policy: which MPI build fits which fabric, GPU, launcher and OS, with reason and source.

Rules (:mod:`mvstack.model.rules`) are tried in order. The names of the other rows (fabrics, GPUs,
products, …) are the words of hand-written files.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, create_model, model_validator

from mvstack.model.base import EMPTY_LIST, Reasoned, Strict
from mvstack.model.rules import (
    Believe,
    Beneath,
    BuildRow,
    LauncherRow,
    RailRow,
    RefusalRow,
    Setting,
    Transport,
    Use,
    When,
    filled,
)
from mvstack.model.text import Folder, Name, PackageName, Text, Variable, Version
from mvstack.model.vocabulary import Product, Scheduler


def _expression(value: str) -> str:
    try:
        re.compile(value.replace("{version}", "1"))
    except re.error as error:
        raise ValueError(f"this is no regular expression: {error}") from None
    return value


HEADER = filled(
    "{nodes}, {per_node}, {gpus}, {gpu}: no other {…} is filled in", "", "nodes per_node gpus gpu"
)
LOOK = filled("a job that runs {line} on a node of {queue}", "line", "queue options")


class ProductRow(Strict):
    """What each product is: how its version is told at run time, its form, its library's name.

    ``gpu_buffers``: its MPI calls take buffers in GPU memory, and packages over it are built so.
    ``version_text`` is the regular expression that MPI_Get_library_version or mpichversion must
    match, with ``{version}`` for the version planned; ``says_device``: and the device stands there.
    ``environment`` is what its module sets on any fabric.
    """

    title: Text
    form: Literal["source", "binary"]
    version_text: Annotated[Text, AfterValidator(_expression)]
    says_device: bool = True
    gpu_buffers: bool = False
    sonames: dict[Text, Text]
    easybuild: PackageName | None = None
    environment: dict[Variable, Setting] = Field(default_factory=dict)
    source: Text


class Row(Strict):
    """A row with its reason, and the source of that if it has one."""

    why: Text
    source: Text = ""


class Embedded(Strict):
    """What a copy in the MPI's source needs for a fabric, and the word that proves it was found."""

    needs: list[PackageName]
    proof: Variable


class Libfabric(Strict):
    """libfabric's providers for a fabric, in Spack's words; ``provider`` is for FI_PROVIDER.

    ``alternatives`` are providers that a site may ask for instead (``mpi: {provider: …}``).
    """

    fabrics: Annotated[list[Name], Field(min_length=1)]
    provider: Text
    alternatives: dict[Name, Reasoned] = Field(default_factory=dict)
    environment: dict[Variable, Setting] = Field(default_factory=dict)
    embedded: Embedded | None = None
    why: Text
    source: Text

    @property
    def variants(self) -> str:
        """As Spack's variant."""
        return f"fabrics={','.join(self.fabrics)}"


class Ucx(Strict):
    """UCX's variants for a fabric or a GPU; ``believe`` are the transports that prove it."""

    variants: Text = ""
    built: Text = ""  # asked of one that is built here, and not of a site's own
    believe: Annotated[list[Text], Field(min_length=1)]
    environment: dict[Variable, Setting] = Field(default_factory=dict)
    embedded: Embedded | None = None


class Seen(Strict):
    """How a port shows its fabric below /sys: all that is given must hold."""

    driver: Text | None = None
    nic: Text | None = None
    link_layer: Text | None = None
    node_type: Text | None = None


LIBRARIES: dict[str, Literal["libfabric", "ucx"]] = {"ch4:ofi": "libfabric", "ch4:ucx": "ucx"}
"""What stands beneath MVAPICH's devices."""


class FabricRow(Row):
    """One fabric: what drives it, how it is seen, and MVAPICH's devices for it without GPUs.

    ``loud`` is said wherever a partition with it is checked, explained or installed.
    """

    title: Text
    loud: Text = ""
    devices: list[Literal["ch4:ofi", "ch4:ucx"]] = EMPTY_LIST
    libfabric: Libfabric | None = None
    ucx: Ucx | None = None
    seen: list[Seen] = EMPTY_LIST

    @model_validator(mode="after")
    def _devices_have_libraries(self) -> Self:
        for device in self.devices:
            if getattr(self, LIBRARIES[device]) is None:
                raise ValueError(f"device {device} needs a field {LIBRARIES[device]}")
        return self

    def build(self, name: str) -> BuildRow | None:
        """The row that ``devices`` stand for among those of builds.yaml; None without them."""
        if not self.devices:
            return None
        under = {str(one): Transport(library=LIBRARIES[one]) for one in self.devices}
        use = Use(product="mvapich", devices=list(self.devices), transports=under)
        when = When(fabric=[name], gpu=["none"])
        return BuildRow(id=name, when=when, use=use, why=self.why, source=self.source)


UCX_ALWAYS = "+cma +thread_multiple"
"""What MVAPICH asks of every UCX."""


class GpuRow(Row):
    """A kind of GPU: the binary products' word, and what compilers write for by model.

    ``arch_variant`` is Spack's variant for it; ``needs_arch``: no build without. ``libfabric`` and
    ``ucx`` are what is asked of each library for its buffers; ``resource`` is Kubernetes' word.
    """

    package: Name
    resource: Text = ""
    architectures: dict[PackageName, Text] = Field(default_factory=dict)
    arch_variant: Name | None = None
    needs_arch: bool = False
    libfabric: Text = ""
    ucx: Ucx | None = None


class Program(Row):
    """What starts ranks: the process manager by EasyBuild's word, and by Spack's if it differs.

    ``scheduler`` is the one that it belongs to, for systems whose file names none; ``reframe`` is
    ReFrame's launcher of its kind.
    """

    manager: Name
    spack: Name | None = None
    scheduler: Scheduler = "none"
    reframe: Name = "local"


class SchedulerRow(Row):
    """A scheduler: ReFrame's backend for it, how a job is submitted, the header of its script.

    ``script`` is its template. ``hosts`` prints the nodes of a job, one on a line, for launchers
    that ask no scheduler. ``look`` starts a line of shell on a node, for `mvstack adopt`.
    """

    reframe: Name
    submit: Text = ""
    script: Literal["job.sh", "job.yaml"] = "job.sh"
    directive: Text = ""
    header: list[Annotated[Text, HEADER]] = EMPTY_LIST
    first: Text = ""
    hosts: Text = "hostname"
    look: Annotated[Text, LOOK] = "on a node of it: sh -c {line}"

    def lines(self, more: list[str], **values: int | str) -> list[str]:
        """The first lines of a job; ``values`` fill in the header, ``more`` come after it."""
        asked = [one for one in self.header if values["gpus"] or "{gpus}" not in one]
        options = [*(one.format(**values) for one in asked), *more]
        return [f"{self.directive} {one}".strip() for one in options]


class PmiRow(Row):
    """A PMI, and the names by which ``srun --mpi=list`` offers it."""

    plugins: list[Name] = EMPTY_LIST


class FileSystemRow(Row):
    """A driver of ROMIO, the types of mounts that lead to it, the products that lack it."""

    mounts: list[Name] = EMPTY_LIST
    not_in: list[Product] = EMPTY_LIST


class Place(Strict):
    """How a package shows itself: a header, pkg-config's file, the tools that tell its version.

    Without a header it is pkg-config's file that shows it.
    ``prefixes`` are places to look in before /usr/local and /usr (``usual``); one ending in ``/*``
    stands for the versions below it, the newest first, and ``{triple}`` for Debian's architecture.
    """

    header: Text = ""
    pc: Text = ""
    tools: list[Text] = EMPTY_LIST
    prefixes: list[Folder] = EMPTY_LIST
    usual: bool = True


class External(Row):
    """A package that a site may provide, and Spack's packages that it stands for; [] is none.

    ``seen`` is how `mvstack discover` finds it.

    ``parameter`` is that of the MPI's easyblock which is told its prefix, for the builds for which
    ``when`` holds, unless it is ``default``, where configure looks by itself.
    """

    packages: list[PackageName] | None = None
    parameter: Variable | None = None
    when: When = Field(default_factory=When)
    default: Folder = "/usr"
    seen: Place | None = None


class Generation(Row):
    """A generation of EasyBuild's toolchains: its GCC, and what stands beneath, by version."""

    gcc: Version
    versions: dict[PackageName, Version]


class Policy(Strict):
    """All policy files together; ``builds`` holds the fabrics' own too."""

    fabrics: dict[Name, FabricRow] = Field(default_factory=dict)
    providers: dict[Name, Literal[""] | Name] = Field(default_factory=dict)
    drivers: dict[Name, Name] = Field(default_factory=dict)
    gpus: dict[Name, GpuRow] = Field(default_factory=dict)
    interfaces: dict[Name, Text] = Field(default_factory=dict)
    builds: list[BuildRow] = EMPTY_LIST
    launchers: list[LauncherRow] = EMPTY_LIST
    programs: dict[Name, Program] = Field(default_factory=dict)
    pmis: dict[Name, PmiRow] = Field(default_factory=dict)
    schedulers: dict[Name, SchedulerRow] = Field(default_factory=dict)
    refusals: list[RefusalRow] = EMPTY_LIST
    rails: list[RailRow] = EMPTY_LIST
    products: dict[Name, ProductRow] = Field(default_factory=dict)
    file_systems: dict[Name, FileSystemRow] = Field(default_factory=dict)
    externals: dict[Name, External] = Field(default_factory=dict)
    generations: dict[Version, Generation] = Field(default_factory=dict)

    def generation(self, gcc: str) -> str:
        """The name of the generation with that GCC; "" when there is none."""
        return next((name for name, row in self.generations.items() if row.gcc == gcc), "")

    def beneath(
        self, row: BuildRow, device: str, fabric: str, gpu: str, provider: str | None = None
    ) -> Beneath:
        """What ``row`` gets of the fabric and the GPU for ``device``, so that no row can forget it.

        What the row itself says goes over it. Raises LookupError where the library does not drive
        the fabric, or not by that provider.
        """
        own, where, kind = row.use.transports[device], self.fabrics[fabric], self.gpus[gpu]
        under = {"libfabric": where.libfabric, "ucx": where.ucx}.get(own.library)
        if under is None and own.library in ("libfabric", "ucx"):
            raise LookupError(f"{own.library} does not drive fabric {fabric}")
        known = [under.provider, *under.alternatives] if isinstance(under, Libfabric) else []
        if provider and provider not in known:
            there = " and ".join(known) or "none"
            raise LookupError(f"provider {provider}: {own.library} has {there} for fabric {fabric}")
        words, environment, believe = [own.variants], {}, Believe()
        if isinstance(under, Libfabric):
            words = [under.variants, own.variants, kind.libfabric]
            reason = under.alternatives.get(provider or "", under)
            used = provider or under.provider
            environment = {"FI_PROVIDER": Setting(value=used, why=reason.why, source=reason.source)}
            believe = Believe(providers=[used])
        elif under:
            of_gpu = kind.ucx.variants if kind.ucx else ""
            words = [under.variants, UCX_ALWAYS, own.variants, of_gpu]
            believe = Believe(transports=under.believe, memory=kind.ucx.believe if kind.ucx else [])
        more = under.environment if under else {}
        variants = " ".join(word for word in words if word)
        return Beneath(
            transport=own.model_copy(update={"variants": variants}),
            environment={**environment, **more, **row.use.environment},
            believe=believe.model_copy(update=row.believe.model_dump(exclude_defaults=True)),
        )


def _file(name: str, *fields: str) -> type[Strict]:
    """The model of one file, which holds these fields of the policy."""
    parts: dict[str, Any] = {
        field: (Policy.model_fields[field].annotation, Policy.model_fields[field])
        for field in fields
    }
    return create_model(name, __base__=Strict, __doc__=f"{name}.yaml.", **parts)


FILES: dict[str, type[Strict]] = {
    name: _file(name, *fields)
    for name, fields in {
        "fabrics": ("fabrics", "providers", "drivers"),
        "gpus": ("gpus", "interfaces"),
        "builds": ("builds",),
        "launchers": ("launchers", "programs", "pmis"),
        "schedulers": ("schedulers",),
        "refusals": ("refusals",),
        "rails": ("rails",),
        "products": ("products",),
        "file-systems": ("file_systems",),
        "externals": ("externals",),
        "generations": ("generations",),
    }.items()
}
"""The files of the policy that choose and plan, each with its model."""
