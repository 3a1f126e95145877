"""The Spack and the spack-packages that this stack is written against: tag and commit of each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from mvstack.errors import InvalidInput, Problem
from mvstack.model.load import ENVIRONMENTS, REPOSITORY
from mvstack.model.yamlfile import read_yaml

POLICY = ENVIRONMENTS / "policy" / "spack.yaml"
REQUIREMENTS = REPOSITORY / "requirements" / "spack.txt"
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


def load_pins(path: Path | None = None) -> Pins:
    """The pins of environments/policy/spack.yaml. Raises InvalidInput where one is missing."""
    file = read_yaml(path or POLICY)
    found, problems = {}, []
    for name in URLS:
        row = file.data.get(name) if isinstance(file.data, dict) else None
        row = row if isinstance(row, dict) else {}
        missing = [key for key in ("url", "tag", "commit") if not isinstance(row.get(key), str)]
        if missing:
            problems.append(
                Problem(
                    f"{name}: {' and '.join(missing)} missing, or no text",
                    file.where((name,)),
                    todo="name the repository, the tag, and the commit that the tag must be",
                )
            )
        else:
            found[name] = Pin(name, row["url"], row["tag"], row["commit"])
    if problems:
        raise InvalidInput(*problems)
    return Pins(found["spack"], found["packages"])
