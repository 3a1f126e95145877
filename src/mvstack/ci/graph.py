"""What a pipeline asks about: every partition's graph, and what its other jobs depend on.

Read from what a side rendered, so that a revision and the working tree are read alike. Content
hashes of nodes are those under which binary caches keep them: what a pipeline decides, a cache
can answer.
"""

import ast
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mvstack.builders.base import Rendered, builder_of, builders
from mvstack.diff.sides import Side, read_side, reading
from mvstack.model.meaning import of_paths, of_texts
from mvstack.plan import graph as plans
from mvstack.plan.graph import Node, without_prose
from mvstack.support import hashes
from mvstack.test.expected import Check, expected_checks

NONE: Mapping[str, Path] = {}
WHOLE = "whole"
"""Key of the node that stands for all of a Spack partition whose lock file is not known yet."""


@dataclass(frozen=True)
class Checked:
    """One file of checks: the hash of all that it is made of, and the tags of its checks.

    ``software`` names the packages that they are of; empty where they need none in the plan.
    """

    content: str
    tags: frozenset[str]
    software: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Graph(plans.Graph):
    """A partition's graph, and hashes of what its other jobs depend on.

    ``aspects`` are hashes by name: modules, checks' settings, references, image, environment.
    ``cloud`` is that of its image, "" without one.
    """

    os: str = field(kw_only=True)
    target: str = field(kw_only=True)
    gpu: str = field(kw_only=True)
    cloud: str = field(default="", kw_only=True)
    aspects: dict[str, str] = field(kw_only=True)
    checks: dict[str, Checked] = field(default_factory=dict, kw_only=True)

    @property
    def state(self) -> str:
        """One hash of all that is built, checked and published: what a deployment is of."""
        return hashes.of(
            [node.content for node in self.nodes.values()],
            {name: value for name, value in self.aspects.items() if name != "image"},
        )


def read_graphs(side: Side, locks: Mapping[str, Path] = NONE) -> dict[str, Graph]:
    """Every partition that ``side`` rendered, by ``system/partition``.

    ``locks`` are folders with the lock files of some of them.
    """
    checks: dict[str, Checked] = {}
    for folder in reversed(side.home.folders("checks")):  # the site's go before ours
        checks |= read_checks(folder)
    found = {}
    for name, rendered in read_side(side).items():
        with reading(side, name):
            found[name] = _read(side, rendered, checks, locks.get(name))
    return found


def _read(side: Side, rendered: Rendered, checks: dict[str, Checked], locks: Path | None) -> Graph:
    plan, builder = rendered.plan, builder_of(rendered.plan.builder)
    name = f"{plan.system}/{plan.partition}"
    folder = side.rendered / name
    image = folder / "image" / "image.json"
    files = [one / "spack.lock" for one in (locks, folder / "spack") if one]
    lock = next((one for one in files if builder.solves and one.is_file()), None)
    found = builder.resolve(replace(rendered, lock=lock))
    environment = builder.environment(rendered)
    nodes = found.nodes
    if builder.solves and lock is None:  # what is built is not known before it is solved for
        content = hashes.of(environment)
        whole = Node(WHOLE, "whole", "Spack's environment", "", content, ingredients=environment)
        nodes = {WHOLE: whole}
    software = {package.name for package in plan.packages}
    return Graph(
        name,
        found.builder,
        found.by,
        nodes,
        os=plan.os,
        target=plan.target,
        gpu=plan.mpi[0].gpu if plan.mpi else "none",
        cloud=json.loads(image.read_text()).get("cloud", "") if image.is_file() else "",
        aspects=_aspects(side, folder, rendered, environment),
        checks={
            file: one for file, one in checks.items() if not one.software or one.software & software
        },
    )


def _aspects(
    side: Side, folder: Path, rendered: Rendered, environment: dict[str, str]
) -> dict[str, str]:
    """Hashes of what is no node: what publishes, validates, concretizes and makes images."""
    plan, top = rendered.plan, rendered.repository
    builder = builder_of(plan.builder)
    modules, words = builder.shown(rendered)
    texts = {name: text for name, text in rendered.files.items() if name.startswith("modules/")}
    others = [one for name, one in builders().items() if name != plan.builder]
    references = side.home.file("references", f"{plan.system}.yaml")
    found = {
        "modules": hashes.of(of_texts(texts), modules),
        "help of the modules": hashes.of(words),
        "settings of the checks": hashes.of(
            of_paths([top / "tests" / "reframe" / "settings.py"], top),
            without_prose(plan.as_dict(), tuple(x for one in others for x in one.words)),
        ),
        "references": of_paths([references], references.parent),
    }
    if environment:
        found["environment"] = hashes.of(environment)
    if (folder / "image" / "image.json").is_file():
        found["image"] = _image(top, folder)
    return found


def _image(top: Path, folder: Path) -> str:
    """All that decides an image beside the packages in it."""
    image: dict[str, Any] = json.loads((folder / "image" / "image.json").read_text())
    images = top / "images"
    cloud = image.get("cloud", "")
    steps = {step["script"] for step in image.get("steps", [])}
    clouds = {"aws.pkr.hcl", "azure.pkr.hcl", "qemu.pkr.hcl"} - {f"{cloud}.pkr.hcl"}
    provision = [
        path
        for path in (images / "provision").glob("*")
        if path.name in steps or not path.name[:2].isdigit()
    ]
    templates = [path for path in images.glob("*.pkr.hcl") if path.name not in clouds]
    more = [*(images / "files").rglob("*"), *(images / "tests").glob("*")]
    rendered = [path for path in (folder / "image").rglob("*") if path.name != "image.json"]
    image.pop("generated", None)
    return hashes.of(
        without_prose(image),
        image.get("source"),  # of Packer's template, and no prose
        of_paths(rendered, folder),
        of_paths([*provision, *templates, *more], top),
    )


def read_checks(folder: Path) -> dict[str, Checked]:
    """Every file of checks below ``folder`` by its name; {} where there is no such folder."""
    if not folder.is_dir():
        return {}
    files: dict[Path, list[Check]] = {}
    for check in expected_checks(folder, []):
        files.setdefault(check.file, []).append(check)
    found = {}
    for file, checks in sorted(files.items()):
        name, content = str(file.relative_to(folder)), of_paths(_closure(folder, file), folder)
        tags = frozenset[str]().union(*(one.tags for one in checks))
        found[name] = Checked(content, tags, frozenset(one.software for one in checks) - {""})
    return found


def _closure(folder: Path, start: Path) -> list[Path]:
    """``start``, the modules of the folder that it imports, and the sources that these name."""
    sources = [path for path in (folder / "src").glob("*") if path.is_file()]

    def below(path: Path) -> list[Path]:
        if path in sources:
            return []
        names, words = _read_python(path)
        own = [one for name in names if (one := folder / f"{name}.py").is_file()]
        return own + [one for one in sources if any(one.name in word for word in words)]

    return sorted(hashes.reached([start], below))


def _read_python(path: Path) -> tuple[list[str], list[str]]:
    """The modules that a Python file imports, and its strings."""
    names: list[str] = []
    words: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.append(node.value)
    return names, words
