"""The policy: which MPI build fits which fabric, GPU, launcher and OS, with reason and source.

Three kinds of rows, each in the order in which it is tried:

* builds: what fits a machine (`use`), what a check must see to believe it (`believe`);
* launchers: how a product of given versions is launched, and the PMI that this takes;
* refusals: combinations that do not work, each with its reason and what works instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, field_validator

from mvstack.model.base import Strict
from mvstack.model.system import Name
from mvstack.model.vocabulary import Fabric, Gpu, Launcher, Pmi, Product, Provision


class When(Strict):
    """A condition. A field that is left out holds for everything; lists mean *one of*.

    ``os`` and ``device`` entries may end in ``*``. ``version`` is a specifier such as ``>=4.0``.
    """

    fabric: list[Fabric] = Field(default_factory=list)
    nic: list[str] = Field(default_factory=list)
    gpu: list[Gpu] = Field(default_factory=list)
    gpu_buffers: Literal["direct", "staged"] | None = None
    launcher: list[Launcher] = Field(default_factory=list)
    pmi: list[Pmi] = Field(default_factory=list)
    os: list[str] = Field(default_factory=list)
    not_os: list[str] = Field(default_factory=list)
    arch: list[str] = Field(default_factory=list)
    not_arch: list[str] = Field(default_factory=list)
    product: list[Product] = Field(default_factory=list)
    version: str | None = None
    device: list[str] = Field(default_factory=list)
    libfabric: Provision | None = None
    fallback: bool | None = None

    @field_validator("version")
    @classmethod
    def _specifier(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                SpecifierSet(value)
            except InvalidSpecifier:
                raise ValueError(
                    f"{value} is not a version condition; write e.g. '>=4.0,<5'"
                ) from None
        return value


class Setting(Strict):
    """A variable that the MPI's module sets, with the reason."""

    value: str
    why: str
    source: str


class Transport(Strict):
    """The library beneath the device, who provides it, and the variants that the fabric needs."""

    library: Literal["libfabric", "ucx", "rdma-core", "psm2", "none"]
    provision: Provision = "external"
    variants: str = ""


class Use(Strict):
    """The build: ``devices`` in order, the first is the default of the module hierarchy."""

    product: Product
    devices: Annotated[list[str], Field(min_length=1)]
    transports: dict[str, Transport]
    environment: dict[str, Setting] = Field(default_factory=dict)
    configure: dict[str, str] = Field(default_factory=dict)


class Believe(Strict):
    """What a check must see at run time to believe that this is the build which was planned."""

    providers: list[str] = Field(default_factory=list)
    transports: list[str] = Field(default_factory=list)


class BuildRow(Strict):
    """One row of builds.yaml; ``by_name``: only for a partition that asks for the product so."""

    id: Name
    when: When
    by_name: bool = False
    use: Use
    believe: Believe = Believe()
    why: str
    source: str


class LauncherRow(Strict):
    """One row of launchers.yaml; ``pmi`` lists what works, the first is the default."""

    id: Name
    when: When
    pmi: Annotated[list[Pmi], Field(min_length=1)]
    launch: str
    configure: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, Setting] = Field(default_factory=dict)
    why: str
    source: str


class RefusalRow(Strict):
    """One row of refusals.yaml: what is refused, why, and what works instead."""

    id: Name
    when: When
    refuse: str
    nearest: str
    todo: str
    source: str


class ProductRow(Strict):
    """What each product is: how its version is told at run time, its form, its library's name.

    ``version_text`` is the regular expression that MPI_Get_library_version or mpichversion must
    match, with ``{version}`` for the version planned.
    """

    title: str
    form: Literal["source", "binary"]
    version_text: str
    sonames: dict[str, str]
    easybuild: str | None = None
    source: str


class Builds(Strict):
    """builds.yaml."""

    builds: list[BuildRow]


class Launchers(Strict):
    """launchers.yaml."""

    launchers: list[LauncherRow]


class Refusals(Strict):
    """refusals.yaml."""

    refusals: list[RefusalRow]


class Products(Strict):
    """products.yaml."""

    products: dict[Product, ProductRow]


class Policy(Strict):
    """All policy files together."""

    builds: list[BuildRow]
    launchers: list[LauncherRow]
    refusals: list[RefusalRow]
    products: dict[Product, ProductRow]
