"""What a source is: its file, the hashes that its recipe lists, and where it can be had."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from mvstack.errors import InvalidInput, Problem, relative
from mvstack.model.base import Strict, validated
from mvstack.model.load import ENVIRONMENTS
from mvstack.model.yamlfile import read_yaml

SHA256 = re.compile(r"[0-9a-f]{64}")


class Known(Strict):
    """What environments/policy/sources.yaml says of one file beyond its recipe."""

    debian: str = ""
    pypi: str = ""
    licence_page: str = ""
    hashes: dict[str, str] = Field(default_factory=dict)
    refused: dict[str, str] = Field(default_factory=dict)
    why: str
    source: str


class _File(Strict):
    sources: dict[str, Known]


@dataclass(frozen=True)
class SourceSpec:
    """One source file of one version of a software.

    ``hashes`` are those that the recipe lists, upstream's first; ``notes`` says of a hash whose
    bytes it is; ``refused`` of a hash why it is not taken. ``debian`` is ``package=version`` in
    the Debian source archive, ``pypi`` a requirement such as ``impi-rt==2021.19.0``.
    """

    software: str
    version: str
    filename: str
    hashes: tuple[str, ...]
    urls: tuple[str, ...] = ()
    debian: str = ""
    pypi: str = ""
    licence_page: str = ""
    notes: dict[str, str] = field(default_factory=dict, hash=False)
    refused: dict[str, str] = field(default_factory=dict, hash=False)
    recipe: str = ""

    @property
    def name(self) -> str:
        """``mvapich@4.0``."""
        return f"{self.software.lower()}@{self.version}"

    def upstream(self, sha256: str) -> bool:
        """Whether bytes with this hash are upstream's own."""
        return sha256 in self.hashes and "not upstream" not in self.notes.get(sha256, "")


def specs_from_easyconfigs(paths: Iterable[Path]) -> list[SourceSpec]:
    """The sources that EasyBuild's own parser finds in ``paths``, each file once.

    Raises InvalidInput for an easyconfig that is not one, or whose source has no SHA-256.
    """
    found: dict[tuple[str, str, tuple[str, ...]], SourceSpec] = {}
    for path in paths:
        for spec in _specs(path):
            found.setdefault((spec.software, spec.filename, spec.hashes), spec)
    return list(found.values())


def _specs(path: Path) -> list[SourceSpec]:
    values = _parsed(path)
    names = {
        "name": values["name"],
        "namelower": values["name"].lower(),
        "version": values["version"],
        "version_major": values["version"].split(".")[0],
        "version_major_minor": ".".join(values["version"].split(".")[:2]),
        "nameletter": values["name"][0],
        "nameletterlower": values["name"][0].lower(),
        "versionsuffix": values.get("versionsuffix", ""),
    }
    urls = [_filled(url, names) for url in values.get("source_urls", [])]
    checksums = values.get("checksums", [])
    specs = []
    for number, source in enumerate(values.get("sources", [])):
        filename = source if isinstance(source, str) else source.get("filename", "")
        filename = _filled(filename, names)
        listed = checksums[number] if number < len(checksums) else ()
        if isinstance(listed, dict):
            listed = listed.get(filename, ())
        hashes = (listed,) if isinstance(listed, str) else tuple(listed or ())
        if not hashes or not all(SHA256.fullmatch(str(one)) for one in hashes):
            raise InvalidInput(
                Problem(
                    f"source {filename} has no SHA-256",
                    relative(path),
                    found=str(listed),
                    todo="add it to checksums",
                )
            )
        known = known_sources().get(filename)
        specs.append(
            SourceSpec(
                values["name"],
                values["version"],
                filename,
                hashes,
                tuple(url.rstrip("/") + "/" + filename for url in urls),
                known.debian if known else "",
                known.pypi if known else "",
                known.licence_page if known else "",
                dict(known.hashes) if known else {},
                dict(known.refused) if known else {},
                relative(path),
            )
        )
    return specs


def _parsed(path: Path) -> dict[str, Any]:
    """The plain values of an easyconfig, read as EasyBuild reads it: Python, with its constants."""
    from easybuild.framework.easyconfig.parser import EasyConfigParser
    from easybuild.tools.build_log import EasyBuildError

    try:
        values: dict[str, Any] = EasyConfigParser(filename=str(path)).get_config_dict()
    except EasyBuildError as error:
        raise InvalidInput(Problem(f"not an easyconfig: {error.msg}", relative(path))) from None
    return values


def _filled(text: str, names: dict[str, str]) -> str:
    return re.sub(r"%\((\w+)\)s", lambda m: names.get(m.group(1), m.group(0)), text)


@cache
def known_sources() -> dict[str, Known]:
    """environments/policy/sources.yaml by file name."""
    return validated(_File, read_yaml(ENVIRONMENTS / "policy" / "sources.yaml")).sources
