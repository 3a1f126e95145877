"""Rows of the policy that are tried in order: builds, launchers, rails and refusals.

Each says when it holds (`when`) and what follows: what fits a machine (`use`) and what a check must
see to believe it (`believe`), how a product is launched, or why a combination does not work.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, Field

from mvstack.model.base import EMPTY_LIST, Reasoned, Strict
from mvstack.model.text import Count, Device, Name, Text, Variable
from mvstack.model.vocabulary import Fabric, Gpu, Launcher, Pmi, Product, Provision


def _condition(value: str) -> str:
    try:
        SpecifierSet(value)
    except InvalidSpecifier:
        raise ValueError(f"{value} is not a version condition; write e.g. '>=4.0,<5'") from None
    return value


def filled(says: str, must: str, may: str) -> AfterValidator:
    """Text, or that of a setting, in which the words ``must`` and ``may`` stand in braces."""

    def checked(value: "str | Setting") -> "str | Setting":
        found = set(re.findall(r"{(.*?)}", value if isinstance(value, str) else value.value))
        if not set(must.split()) <= found <= {*must.split(), *may.split()}:
            raise ValueError(says)
        return value

    return AfterValidator(checked)


LAUNCH = filled(
    "{ranks} and {program} must be in it, {pmi} may be, and no other {…}", "ranks program", "pmi"
)
RAILS = filled(
    "no {…} but {rails}, {each}, {hcas}, {devices}, {interfaces} and {key} may be in a value",
    *("", "rails each hcas devices interfaces key"),
)


class When(Strict):
    """A condition. A field that is left out holds for everything; lists mean *one of*.

    ``os`` and ``device`` entries may end in ``*``. ``version`` is a specifier such as ``>=4.0``.
    ``provided``: whether the site has the MPI already. ``cma``: as in a partition.
    """

    fabric: list[Fabric] = EMPTY_LIST
    nic: list[Text] = EMPTY_LIST
    gpu: list[Gpu] = EMPTY_LIST
    gpu_buffers: Literal["direct", "staged"] | None = None
    launcher: list[Launcher] = EMPTY_LIST
    pmi: list[Pmi] = EMPTY_LIST
    os: list[Text] = EMPTY_LIST
    not_os: list[Text] = EMPTY_LIST
    arch: list[Text] = EMPTY_LIST
    not_arch: list[Text] = EMPTY_LIST
    product: list[Product] = EMPTY_LIST
    version: Annotated[Text, AfterValidator(_condition)] | None = None
    device: list[Text] = EMPTY_LIST
    libfabric: Provision | None = None
    fallback: bool | None = None
    provided: bool | None = None
    cma: bool | None = None


class Setting(Reasoned):
    """A variable that the MPI's module sets, with the reason, for builds that ``when`` is of."""

    value: Text
    when: When = Field(default_factory=When)


class Transport(Strict):
    """The library beneath the device, who provides it, and variants of the row's own."""

    library: Literal["libfabric", "ucx", "rdma-core", "opa-psm2", "none"]
    provision: Provision = "external"
    variants: Text = ""


class Use(Strict):
    """The build: ``devices`` in order, the first is the default of the module hierarchy."""

    product: Product
    devices: Annotated[list[Device], Field(min_length=1)]
    transports: dict[Device, Transport]
    environment: dict[Variable, Setting] = Field(default_factory=dict)
    configure: dict[Name, Text] = Field(default_factory=dict)


class Believe(Strict):
    """What a check must see at run time: of each list that is not empty, at least one.

    ``transports`` carry messages over the fabric, ``memory`` are those that reach GPU buffers.
    """

    providers: list[Text] = EMPTY_LIST
    transports: list[Text] = EMPTY_LIST
    memory: list[Text] = EMPTY_LIST


@dataclass(frozen=True)
class Beneath:
    """What stands beneath one device of a row on one fabric with one kind of GPU."""

    transport: Transport
    environment: dict[str, Setting]
    believe: Believe


class BuildRow(Reasoned):
    """One row of builds.yaml; ``by_name``: only for a partition that asks for the product so."""

    id: Name
    when: When
    by_name: bool = False
    use: Use
    believe: Believe = Field(default_factory=Believe)


class LauncherRow(Reasoned):
    """One row of launchers.yaml; ``pmi`` lists what works, the first is the default."""

    id: Name
    when: When
    pmi: Annotated[list[Pmi], Field(min_length=1)]
    launch: Annotated[Text, LAUNCH]
    configure: dict[Name, Text] = Field(default_factory=dict)
    environment: dict[Variable, Setting] = Field(default_factory=dict)


class RailRow(Strict):
    """One row of rails.yaml: what is set where a node has ``least`` links or more.

    A value holds where the system's file says what is in its braces: names of adapters (``hcas``,
    ``devices``, ``interfaces``) and the partition ``key``. ``rails`` are the links of the node,
    ``each`` those of one rank: its GPU's share, or all; the field ``each`` says so where a rank
    uses fewer than all. With ``torus`` the row is for such networks; ``configure`` are the words
    by which each builder makes the MPI for it.
    """

    id: Name
    when: When
    least: Count = 2
    torus: bool = False
    each: Text = ""
    configure: dict[Name, Text] = Field(default_factory=dict)
    environment: dict[Variable, Annotated[Setting, RAILS]] = Field(default_factory=dict)
    why: Text = ""
    source: Text = ""


class RefusalRow(Strict):
    """One row of refusals.yaml: what is refused, why, and what works instead."""

    id: Name
    when: When
    refuse: Text
    nearest: Text
    todo: Text
    source: Text
