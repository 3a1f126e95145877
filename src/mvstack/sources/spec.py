"""What a source is: its file, the hashes that its recipe lists, and where it can be obtained."""

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from mvstack.model.base import Reasoned, Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.home import home
from mvstack.support.words import listed, nearest

SHA256 = re.compile(r"[0-9a-f]{64}")
# What may stand in a path below the mirror. A name beginning with a dot or a dash would hide a
# file or look like an option to the tools that unpack it.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~@-]*")

# The longest first, so that `.tar.gz` is not taken for `.gz`.
EXTENSIONS = (
    *("tar.gz", "tar.xz", "tar.bz2", "tar.zst", "tar.lz", "tar.Z", "tgz", "txz", "tbz2", "tar"),
    *("zip", "whl", "gz", "xz", "bz2", "sh", "rpm", "jar", "run", "patch"),
)


def extension(filename: str) -> str:
    """The part of a file's name that says how to unpack it; "" when it has none we know."""
    return next((ext for ext in EXTENSIONS if filename.endswith(f".{ext}")), "")


class Debian(Strict):
    """Where Debian's source archive has a file: the source package, and the file's name there."""

    package: str
    file: str


class Whose(Strict):
    """Whose bytes a hash names, and in words what they are."""

    upstream: bool
    note: str


class Known(Reasoned):
    """What environments/policy/sources.yaml says of one file beyond its recipe.

    ``hashes`` says of a hash whose bytes it names, ``refused`` of a hash why it is not taken.
    ``pypi`` is a requirement such as ``impi-rt==2021.19.0``.
    """

    debian: Debian | None = None
    pypi: str = ""
    licence_page: str = ""
    hashes: dict[str, Whose] = Field(default_factory=dict)
    refused: dict[str, str] = Field(default_factory=dict)

    @field_validator("hashes", "refused")
    @classmethod
    def _hashes(cls, value: dict[str, object]) -> dict[str, object]:
        for one in value:
            if not SHA256.fullmatch(one):
                raise ValueError(f"{one} is not a SHA-256 (64 hexadecimal digits in lower case)")
        return value


class _File(Strict):
    sources: dict[str, Known]


@dataclass(frozen=True)
class SourceSpec:
    """One source file of one version of a software.

    ``hashes`` are those that the recipe lists, in its order; ``recipe`` is ``file:line`` of them.
    ``position`` is the file's among the recipe's own sources, -1 of an extension's or component's.
    ``git`` is EasyBuild's ``git_config`` of a file that is packed from a repository.
    """

    software: str
    version: str
    filename: str
    hashes: tuple[str, ...]
    urls: tuple[str, ...] = ()
    known: Known = field(default_factory=Known.model_construct, hash=False)
    recipe: str = ""
    position: int = 0
    git: dict[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        problems = [
            Problem(
                f"{what}: this cannot be a name in the mirror",
                self.recipe,
                found=repr(name),
                allowed="letters, digits and _ . + ~ @ -, beginning with a letter or digit",
            )
            for what, name in (("software", self.software), ("file", self.filename))
            if not _NAME.fullmatch(name)
        ]
        if problems:
            raise InvalidInput(*problems)

    @property
    def name(self) -> str:
        """``mvapich@4.0``."""
        return f"{self.software.lower()}@{self.version}"

    def upstream(self, sha256: str) -> bool:
        """Whether bytes with this hash are upstream's own."""
        whose = self.known.hashes.get(sha256)
        return whose.upstream if whose else sha256 in self.hashes

    def note(self, sha256: str) -> str:
        """What is known of the bytes with this hash, in words; "" when nothing is."""
        whose = self.known.hashes.get(sha256)
        return whose.note if whose else ""

    def refusal(self, sha256: str) -> tuple[str, str]:
        """Bytes that are not listed as a message says what was found; and why they are refused."""
        why = self.known.refused.get(sha256, "")
        return f"sha256 {sha256}" + (f" ({why})" if why else ""), why

    @property
    def wanted(self) -> str:
        """The hashes for an error message, each with what it is."""
        rows = [f"{one} ({self.note(one)})" if self.note(one) else one for one in self.hashes]
        return "sha256 " + " or ".join(rows)


def known_sources() -> dict[str, Known]:
    """policy/sources.yaml by file name, a site's rows before ours. Raises InvalidInput."""
    paths = [folder / "sources.yaml" for folder in reversed(home().folders("policy"))]
    found = [_known(path) for path in paths if path.is_file()]
    return {name: row for rows in found for name, row in rows.items()}


@cache
def _known(path: Path) -> dict[str, Known]:
    return validated(_File, read_yaml(path)).sources


def named(specs: list[SourceSpec], name: str) -> list[SourceSpec]:
    """The sources meant by ``mvapich@4.0``, ``mvapich`` (every version) or ``hpcc@1.5.0:FILE``.

    Case and surrounding white space do not matter. Raises InvalidInput, with the nearest name,
    when there is none.
    """
    wanted, _, filename = name.strip().partition(":")
    wanted = wanted.lower()
    same = [spec for spec in specs if wanted in (spec.name.lower(), spec.software.lower())]
    found = [spec for spec in same if not filename or spec.filename == filename]
    if found:
        return found
    # A name that is right but for the file after the colon is answered with the files.
    known = sorted({f"{s.name}:{s.filename}" for s in same} or {s.name for s in specs})
    close = nearest(name.strip(), known) or _newest_like(wanted, known)
    raise InvalidInput(
        f"no recipe has a source called {name!r}" + (f"; did you mean {close}?" if close else ""),
        found=name,
        allowed=listed(known),
        nearest=close,
        todo="name one of these; `mvstack sources fetch --help` shows how",
    )


def _newest_like(wanted: str, known: list[str]) -> str:
    """The newest of the software whose name is nearest, for a version that there is not."""
    software = nearest(wanted.partition("@")[0], [name.partition("@")[0] for name in known])
    same = [name for name in known if software and name.partition("@")[0] == software]
    return same[-1] if same else ""
