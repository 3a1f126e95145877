"""What the release's tree in an image is made of: its MPI and packages, and from which bytes."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.plan.spack import own_repositories
from mvstack.sources.recipes import specs_from_easyconfigs
from mvstack.support.errors import InvalidInput, relative
from mvstack.tree.records import kept_plan

Row = dict[str, Any]
LICENCE = re.compile(r'^    license\(\s*"([^"]+)"', re.M)


@dataclass(frozen=True)
class Source:
    """One file that a component was built from. ``place`` is where it was had, in words.

    ``upstream`` tells whether the bytes are those that upstream publishes; ``url`` is where a
    recipe says that upstream has it, "" when unknown.
    """

    file: str
    sha256: str
    place: str
    upstream: bool
    note: str
    url: str = ""


@dataclass(frozen=True)
class Component:
    """One package of the release. ``licence`` is an SPDX expression, "" when unknown."""

    name: str
    version: str
    title: str = ""
    module: str = ""
    licence: str = ""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What the recipes say beyond the records: a file's URL upstream, a package's licence.

    Licences are SPDX expressions by the package's name in lower case.
    """

    urls: Mapping[str, str] = field(default_factory=dict)
    licences: Mapping[str, str] = field(default_factory=dict)


def known_facts(easyconfigs: Iterable[Path]) -> Facts:
    """What these easyconfigs and the repository's Spack recipes say. Raises InvalidInput."""
    specs = specs_from_easyconfigs(easyconfigs)
    places = [p for one in own_repositories().values() for p in one.glob("packages/*/package.py")]
    texts = {path.parent.name: path.read_text() for path in places}
    licences = {
        folder.lstrip("_").replace("_", "-"): found[1]
        for folder, text in texts.items()
        if (found := LICENCE.search(text))
    }
    return Facts({spec.filename: spec.urls[0] for spec in specs if spec.urls}, licences)


def components(tree: Path, facts: Facts = Facts()) -> list[Component]:
    """What is installed in ``tree`` (``<root>/<release>/<partition>``), sorted by name.

    A wrapper of the distribution's own compiler brings no bytes and is left out. Raises
    InvalidInput when the tree has no plan or its records cannot be read.
    """
    try:
        plan = kept_plan(tree)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"is no tree of a release: {error}", relative(tree / "records" / "plan.json")
        ) from None
    titles = {(str(row.get("software") or row.get("name")), str(row.get("version"))): row
              for row in [*plan["mpi"], *plan["packages"]]}  # fmt: skip
    found: dict[tuple[str, str, str], Component] = {}
    for row in _builds(tree):
        name, version = str(row.get("package")), str(row.get("version"))
        sources = tuple(sorted(_sources(row, facts), key=lambda one: one.file))
        planned = titles.get((name, version))
        if sources or planned:
            found[name, version, str(row.get("module"))] = Component(
                name,
                version,
                str((planned or {}).get("title") or ""),
                str(row.get("module") or ""),
                facts.licences.get(name.lower(), ""),
                sources,
            )
    return [found[key] for key in sorted(found)]


def _builds(tree: Path) -> list[Row]:
    """The last row that tells of each package which is still installed."""
    path = tree / "records" / "builds.jsonl"
    last: dict[str, Row] = {}
    try:
        installed = json.loads((tree / "records" / "nodes.json").read_text(encoding="utf-8"))
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["result"] in ("built", "cached"):
                last[str(row.get("easyconfig") or row["hash"])] = row
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"the records of the tree cannot be read: {error}",
            relative(path),
            because="an SBOM that leaves something out is worse than none",
        ) from None
    return [row for key, row in last.items() if not row.get("easyconfig") or key in installed]


def _sources(row: Row, facts: Facts) -> Iterator[Source]:
    for one in row.get("sources") or []:
        place = str(one.get("place", "")).removeprefix("mirror (").removesuffix(")")
        file = str(one["file"])
        url = facts.urls.get(file, "")
        yield Source(
            file,
            str(one["sha256"]),
            place,
            bool(one.get("upstream")),
            str(one.get("note") or ""),
            url if url.startswith(("https://", "http://", "ftp://")) else "",
        )
