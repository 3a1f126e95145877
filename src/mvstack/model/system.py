"""A system: a named machine, its partitions, and what its site decided."""

from typing import Annotated, Literal, Self

import archspec.cpu
from pydantic import Field, StringConstraints, field_validator, model_validator

from mvstack.model.base import EMPTY_LIST, Strict
from mvstack.model.image import ImageSpec
from mvstack.model.text import (
    CompilerName,
    Count,
    Device,
    Folder,
    GpuArch,
    Group,
    HcaName,
    Name,
    PackageName,
    Page,
    Ratio,
    Root,
    Text,
    Version,
)
from mvstack.model.vocabulary import (
    Builder,
    ExternalName,
    Fabric,
    Gpu,
    Launcher,
    Origin,
    Pmi,
    Product,
    Profile,
    Provider,
    Provision,
    Scheduler,
)
from mvstack.model.wiring import Wiring
from mvstack.support.words import nearest


class Compiler(Strict):
    """The compiler that the MPI is built with, and who provides it; ``prefix`` of the site's."""

    name: CompilerName = "gcc"
    version: Version
    origin: Origin = "system"
    prefix: Folder = "/usr"


class External(Strict):
    """A package that the site provides and the stack uses as it is."""

    version: Version | None = None
    prefix: Folder
    providers: list[Provider] = EMPTY_LIST
    transports: list[Name] = EMPTY_LIST
    mpi: list[Name] = EMPTY_LIST
    variants: Text = ""


class Wish(Strict):
    """The MPI build that a site asks for; what is left out is chosen by the policy.

    ``libfabric`` and ``hwloc`` may be `embedded`: built from the MPI's own source.
    ``provider`` is one of the alternatives that the policy has of libfabric's for the fabric.
    ``transport``: `built` has EasyBuild build libfabric or UCX, and hwloc, in the versions of the
    compiler's generation, instead of taking the system's. Over the system's compiler it is UCX
    alone, in the release's version.
    """

    product: Product | None = None
    version: Version | None = None
    device: Device | None = None
    libfabric: Provision | None = None
    hwloc: Literal["embedded"] | None = None
    provider: Provider | None = None
    transport: Literal["system", "built"] = "system"
    why: Text = ""


class Document(Strict):
    """Where a fact about a system was read."""

    title: Text
    page: Page = ""


class Network(Strict):
    """A node's way into its fabric, and what is beyond.

    ``rails`` are its links, each of ``gbps`` Gb/s, by adapters called ``hcas``. ``torus`` are the
    switches in each dimension, ``oversubscription`` is down to up, such as 4:1, and ``pkey`` says
    which nodes share a partition key: ``key``, where it is always the same.
    """

    rails: Annotated[int, Field(ge=1, le=64)] | None = None
    gbps: Count | None = None
    hcas: list[HcaName] = EMPTY_LIST
    topology: Text = ""
    torus: Annotated[list[Count], Field(max_length=6)] = EMPTY_LIST
    oversubscription: Ratio | None = None
    pkey: Text = ""
    key: Annotated[int, Field(ge=2, le=0xFFFE)] | None = None

    @model_validator(mode="after")
    def _each_rail_has_its_adapter(self) -> Self:
        if self.hcas and len(self.hcas) != (self.rails or 1):
            raise ValueError(f"rails: {self.rails or 1} and {len(self.hcas)} hcas are named")
        if len(set(self.hcas)) < len(self.hcas):
            raise ValueError("hcas: each adapter is named once")
        return self


class Near(Strict):
    """What is nearest to a GPU: a NUMA domain, an adapter, and the way to that (NODE, SYS, …)."""

    numa: Annotated[int, Field(ge=0)] | None = None
    hca: HcaName | None = None
    way: Text = ""


class Partition(Strict):
    """Nodes of one kind. ``cores`` are physical cores of one node, ``memory_gb`` its memory.

    ``profile`` is how much of a release is installed when nobody says otherwise; ``without`` names
    packages of it that are left out here, each with the reason. ``gpu_arch`` is what compilers
    write for: ``sm_90`` of NVIDIA's, ``gfx90a`` of AMD's; ``near`` has a row for each GPU.
    ``image_from`` names the partition whose image serves this one's machines, too.
    ``cma``: whether a user's processes may read each other's memory (process_vm_readv).
    """

    title: Text = ""
    nodes: Count = 1
    cores: Count
    memory_gb: Count | None = None
    cma: bool = True
    target: Text
    fabric: Fabric
    nic: Name | None = None
    network: Network = Field(default_factory=Network)
    gpu: Gpu = "none"
    gpus: Annotated[int, Field(ge=0, le=1024)] = 0
    gpu_model: Text = ""
    gpu_arch: GpuArch | None = None
    gpu_buffers: Literal["direct", "staged"] = "direct"
    near: list[Near] = EMPTY_LIST
    launcher: Launcher
    pmi: Pmi | None = None
    scheduler: Scheduler | None = None
    os: Name | None = None
    scheduler_options: list[Text] = EMPTY_LIST
    file_systems: list[Name] = EMPTY_LIST
    compiler: Compiler
    externals: dict[ExternalName, External] = Field(default_factory=dict)
    mpi: Wish = Field(default_factory=Wish)
    profile: Profile | None = None
    without: dict[PackageName, Text] = Field(default_factory=dict)
    image: ImageSpec | None = None
    image_from: (
        Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)] | None
    ) = None

    @field_validator("target")
    @classmethod
    def _known_target(cls, value: str) -> str:
        if value not in archspec.cpu.TARGETS:
            close = nearest(value, archspec.cpu.TARGETS)
            hint = f"; did you mean {close}?" if close else ""
            raise ValueError(f"{value} is not an archspec target{hint} (`archspec cpu` prints one)")
        return value

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if (self.gpu == "none") != (self.gpus == 0):
            raise ValueError(f"gpu: {self.gpu} and gpus: {self.gpus} contradict each other")
        kind = {"sm_": "nvidia", "gfx": "amd"}.get((self.gpu_arch or "")[:3])
        if kind and not self.gpu.startswith(kind):
            raise ValueError(f"gpu: {self.gpu} and gpu_arch: {self.gpu_arch} contradict each other")
        if self.image and self.image_from:
            raise ValueError("image and image_from: one of them makes the image of a partition")
        if self.near and len(self.near) != self.gpus:
            raise ValueError(f"gpus: {self.gpus} and {len(self.near)} rows of near")
        return self

    @property
    def rails(self) -> int:
        """The links of a node into its fabric."""
        links = self.image.links if self.image else None
        return self.network.rails or (links.count if links else 1)


class NotOffered(Strict):
    """Nodes that a system has and for which there is no stack, with the reason."""

    title: Text
    nodes: Count | None = None
    because: Text


class Install(Strict):
    """Where the stack goes on this system, and who may write there.

    ``licensed`` names the licensed packages that the site has, each with the Unix group whose
    members may read it.
    """

    root: Root | None = None
    group: Group | None = None
    licensed: dict[PackageName, Group] = Field(default_factory=dict)
    umask: Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3}$", max_length=4)] = "022"


class System(Strict):
    """One system file.

    ``discover: true`` marks the system that is found by looking at this very machine; it alone
    may have no partitions. ``confirm`` names the fields (dotted) that are public knowledge which
    the site must confirm, each with what is not certain. ``status``: a system that is known from a
    talk alone is a seed. ``known`` is by whom the facts are vouched for: what the public may read
    in ``sources``, or the site itself. What nothing is offered on is ``not_offered``. ``wiring``
    is how its fabric is cabled.
    """

    name: Name
    title: Text = ""
    site: Text = ""
    status: Literal["seed", "current", "retired"] = "current"
    known: Literal["public", "site"] = "site"
    builder: Builder = "easybuild"
    os: Name | None = None
    scheduler: Scheduler = "none"
    discover: bool = False
    install: Install = Field(default_factory=Install)
    source: Text = ""
    sources: list[Document] = EMPTY_LIST
    confirm: dict[Text, Text] = Field(default_factory=dict)
    partitions: dict[Name, Partition] = Field(default_factory=dict)
    not_offered: dict[Name, NotOffered] = Field(default_factory=dict)
    wiring: Wiring | None = None

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        if self.discover:
            return self
        if not self.partitions and not self.not_offered:
            raise ValueError("a system needs at least one partition")
        if both := sorted(set(self.partitions) & set(self.not_offered)):
            raise ValueError(f"not_offered: {both[0]} is among the partitions too")
        if self.os is None and any(part.os is None for part in self.partitions.values()):
            raise ValueError("os must be given, for the system or for each partition")
        return self

    @model_validator(mode="after")
    def _wiring_agrees(self) -> Self:
        for name in self.wiring.nodes if self.wiring else ():
            if name not in self.partitions:
                raise ValueError(f"wiring: nodes: there is no partition {name}")
            dimensions = self.partitions[name].network.torus
            if self.wiring and self.wiring.torus and self.wiring.torus.size != dimensions:
                raise ValueError(f"wiring: torus: size: the network of {name} says {dimensions}")
        return self

    @model_validator(mode="after")
    def _confirm_names_fields(self) -> Self:
        known = self.model_dump(exclude_none=True)
        for dotted in self.confirm:
            node = known
            for part in dotted.split("."):
                if not isinstance(node, dict) or part not in node:
                    raise ValueError(f"confirm: {dotted}: this file has no such field")
                node = node[part]
        return self

    def place(self, partition: str, *field: str) -> str:
        """``file:line: system/partition`` for an error message, at ``field`` of the partition."""
        line = self.at("partitions", partition, *field)
        return f"{line}: {self.name}/{partition}" if line else f"{self.name}/{partition}"

    def scheduler_of(self, partition: str) -> str:
        """The scheduler that the file names for ``partition``."""
        return self.partitions[partition].scheduler or self.scheduler

    def os_of(self, partition: str) -> str:
        """The operating system of ``partition``."""
        return self.partitions[partition].os or self.os or "unknown"
