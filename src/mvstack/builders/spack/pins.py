"""The Spack and the spack-packages that this stack is written against: tag and commit of each."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mvstack.model.spack import spack_pins
from mvstack.support.home import DATA

REQUIREMENTS = DATA / "requirements" / "spack.txt"
# Whoever has a mirror of the repositories, or a git bundle, names it here.
URLS = {"spack": "MVSTACK_SPACK_URL", "packages": "MVSTACK_SPACK_PACKAGES_URL"}


@dataclass(frozen=True)
class Pin:
    """One repository: where it is, the tag that is taken, and the commit that this tag must be."""

    name: str
    url: str
    tag: str
    commit: str

    @property
    def variable(self) -> str:
        """The environment variable that names another place."""
        return URLS[self.name]

    @property
    def place(self) -> str:
        """Where it is really taken from: the variable if it is set, else upstream."""
        return os.environ.get(self.variable) or self.url


@dataclass(frozen=True)
class Pins:
    """What a clone is made of."""

    spack: Pin
    packages: Pin

    @property
    def both(self) -> tuple[Pin, Pin]:
        """Spack first."""
        return self.spack, self.packages


def load_pins() -> Pins:
    """The pins of environments/policy/spack.yaml. Raises InvalidInput for what is wrong there."""
    known = spack_pins()
    return Pins(
        Pin("spack", known.spack.url, known.spack.tag, known.spack.commit),
        Pin("packages", known.packages.url, known.packages.tag, known.packages.commit),
    )
