"""A release: a dated, immutable set of packages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mvstack.model.base import Strict
from mvstack.model.system import Version
from mvstack.model.vocabulary import Product


class MpiVersion(Strict):
    """The version of one MPI product in this release, with the reason for it."""

    version: Version
    why: str
    source: str = ""


class Package(Strict):
    """One package: what it is, in which profiles it is installed, and the reason for its pin.

    Of the packages with one ``instead`` word, a partition gets the first whose source can be had.
    ``spack`` is the spec by which Spack is asked for it; empty when Spack has none.
    """

    name: str
    version: Version
    title: str
    profiles: list[str] = Field(default_factory=lambda: ["default"])
    level: Literal["core", "compiler", "mpi"] = "mpi"
    only_over: list[Product] = Field(default_factory=list)
    instead: str = ""
    module: str
    spack: str = ""
    licence: str = "open"
    why: str = ""


class Release(Strict):
    """One release file. ``mpi`` gives, for each product, the versions in order of preference."""

    name: Annotated[str, StringConstraints(pattern=r"^\d{4}\.\d{2}$")]
    status: Literal["development", "current", "deprecated", "removed"]
    title: str = ""
    mpi: dict[Product, list[MpiVersion]]
    packages: list[Package] = Field(default_factory=list)
