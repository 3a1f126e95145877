"""environments/policy/spack.yaml: the Spack this stack is tested with, and what it is asked for."""

from functools import cache
from typing import Annotated

from pydantic import StringConstraints

from mvstack.model.base import EMPTY_LIST, Reasoned, Strict, validated
from mvstack.model.text import Name, Text, Version
from mvstack.model.yamlfile import read_yaml
from mvstack.support.home import home

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$", max_length=40)]


class Pin(Reasoned):
    """One upstream repository: a clone whose ``tag`` is not ``commit`` is refused."""

    url: Text
    tag: Text
    commit: Commit


class Requirement(Reasoned):
    """What every environment requires of one package."""

    package: Text
    require: Text


class OperatingSystem(Strict):
    """What Spack finds on a node; ``spack`` is its name, ``variants`` are of a gcc built there."""

    names: list[Text]
    spack: Name = ""
    gcc: Version
    glibc: Version
    variants: Text = ""
    source: Text


class SpackPins(Strict):
    """spack.yaml of the policy."""

    spack: Pin
    packages: Pin
    requirements: list[Requirement] = EMPTY_LIST
    operating_systems: list[OperatingSystem] = EMPTY_LIST

    @property
    def repositories(self) -> dict[str, Pin]:
        """Both repositories by name."""
        return {"spack": self.spack, "packages": self.packages}

    def found_on(self, os_name: str) -> OperatingSystem | None:
        """The row of an operating system, None when it has none."""
        return next((row for row in self.operating_systems if os_name in row.names), None)

    def os_of(self, os_name: str) -> str:
        """What Spack calls an operating system."""
        row = self.found_on(os_name)
        return (row and row.spack) or os_name


@cache
def spack_pins() -> SpackPins:
    """The pins. Raises InvalidInput with file and line for what is wrong in them."""
    return validated(SpackPins, read_yaml(home().file("policy", "spack.yaml")))
