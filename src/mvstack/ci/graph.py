"""What one partition consists of, for a pipeline: nodes that are built, and what else decides jobs.

Read from what a side rendered, so that a revision and the working tree are read alike. Content
hashes of nodes are those under which binary caches keep them: what a pipeline decides, a cache
can answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack import hashes
from mvstack.cache.tree import plan_of
from mvstack.ci.checks import Checked, read_checks
from mvstack.ci.meaning import of_paths, of_texts
from mvstack.diff.parts import RECIPES, read_partition
from mvstack.diff.sides import Side
from mvstack.errors import InvalidInput, Problem
from mvstack.install.contents import contents
from mvstack.lock.lockfile import Lock, read_lock
from mvstack.plan import Plan
from mvstack.render import Node as PlanNode

WHOLE = "whole"
"""Key of the node that stands for all of a Spack partition whose lock file is not known yet."""


@dataclass(frozen=True)
class Node:
    """Something that one builder call makes. ``needs`` are the keys of what it stands on.

    ``ingredients`` are its own, by name, so that a difference says what it comes from.
    """

    key: str
    kind: str
    name: str
    version: str
    content: str
    needs: tuple[str, ...] = ()
    mpi: str = ""
    ingredients: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """``HPCC 1.5.0``, or ``HPCC 1.5.0 over mpich/4.0.2-ofi``."""
        return f"{self.name} {self.version}".rstrip() + (f" over {self.mpi}" if self.mpi else "")


@dataclass(frozen=True)
class Graph:
    """A partition: its nodes in build order, and hashes of what its other jobs depend on.

    ``by`` says what the nodes were read from: ``easyconfigs``, ``lock file`` or ``plan``.
    ``aspects`` are hashes by name: modules, checks' settings, references, image, environment.
    """

    name: str
    builder: str
    by: str
    os: str
    target: str
    gpu: str
    tree: str
    launcher: str
    nodes: dict[str, Node]
    aspects: dict[str, str]
    checks: dict[str, Checked] = field(default_factory=dict)

    def closure(self, keys: Iterable[str]) -> set[str]:
        """``keys`` and all that they stand on."""
        found: set[str] = set()
        todo = list(keys)
        while todo:
            key = todo.pop()
            if key not in found:
                found.add(key)
                todo += self.nodes[key].needs
        return found


def read_graphs(side: Side, locks: Path | None = None) -> dict[str, Graph]:
    """Every partition that ``side`` rendered, by ``system/partition``.

    ``locks`` holds lock files as <system>/<partition>/spack.lock.
    """
    checks = read_checks(side.tree / "tests" / "reframe")
    return {
        (name := "/".join(path.parent.relative_to(side.rendered).parts)): _read(
            side, path.parent, name, checks, locks
        )
        for path in sorted(side.rendered.glob("*/*/plan.json"))
    }


def _read(
    side: Side, folder: Path, name: str, checks: dict[str, Checked], locks: Path | None
) -> Graph:
    try:
        data = json.loads((folder / "plan.json").read_text())
        plan = plan_of(data)
        by, nodes = _nodes(side, folder, plan, name, locks)
        first = plan.mpi[0] if plan.mpi else None
        return Graph(
            name=name,
            builder=plan.builder,
            by=by,
            os=plan.os,
            target=plan.target,
            gpu=first.gpu if first else "none",
            tree=plan.tree,
            launcher=first.launcher if first else "",
            nodes={node.key: node for node in nodes},
            aspects=_aspects(side, folder, plan),
            checks=checks,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            Problem(
                "its plan is not one that a pipeline can be made from",
                f"{side.name}: {name}",
                found=f"{type(error).__name__}: {error}",
                todo="compare with a newer revision",
            )
        ) from None


def _nodes(
    side: Side, folder: Path, plan: Plan, name: str, locks: Path | None
) -> tuple[str, list[Node]]:
    if plan.builder == "easybuild":
        return "easyconfigs", _easybuild(side, folder, plan)
    files = [locks / name / "spack.lock"] if locks else []
    for file in [*files, folder / "spack" / "spack.lock"]:
        if file.is_file():
            compiler = file.parent / "compiler" / "spack.lock"
            below = _locked(read_lock(compiler), plan) if compiler.is_file() else []
            return "lock file", [*below, *_locked(read_lock(file), plan, below)]
    parts = read_partition(side, folder)
    ingredients = {
        f"{part.label}: {name}": value
        for part in parts.parts.values()
        for name, value in part.ingredients.items()
    }
    ingredients |= {f"recipe {name}": value for name, value in parts.other_recipes.items()}
    whole = Node(
        WHOLE, "whole", "Spack's environment", "", hashes.of(ingredients), ingredients=ingredients
    )
    return "plan", [whole]


def _easybuild(side: Side, folder: Path, plan: Plan) -> list[Node]:
    ours = {path.name: path for path in sorted((side.tree / "easyconfigs").rglob("*.eb"))}
    blocks = hashes.of_files((side.tree / "easyconfigs" / "easyblocks").glob("*.py"))

    def text_of(node: PlanNode) -> str:
        own = folder / "easyconfigs" / node.easyconfig
        if own.is_file():
            return own.read_text()
        if node.kind == "compiler" and plan.compiler["origin"] != "system":
            return node.easyconfig
        return ours[node.easyconfig].read_text()

    return [
        Node(
            one.node.easyconfig,
            one.node.kind,
            one.node.name,
            one.node.version,
            one.content,
            one.needs,
            one.node.mpi,
            one.ingredients,
        )
        for one in contents(plan, text_of, blocks)
    ]


def _locked(lock: Lock, plan: Plan, below: Iterable[Node] = ()) -> list[Node]:
    """The packages of a lock file that are built, what they stand on first."""
    mpis = {str((mpi.spack or {}).get("package", mpi.product)) for mpi in plan.mpi}
    done: dict[str, Node] = {}
    first = tuple(node.key for node in below)
    stack = [(node.hash, False) for node in reversed(lock.root_nodes())]
    while stack:
        key, ready = stack.pop()
        node = lock.nodes[key]
        if key in done or node.external:
            continue
        needs = [edge.hash for edge in node.dependencies if not lock.nodes[edge.hash].external]
        if not ready:
            stack.append((key, True))
            stack += [(one, False) for one in reversed(needs)]
            continue
        kind = "mpi" if node.name in mpis else "package"
        ingredients = {
            "version": node.version,
            "recipe": node.package_hash,
            "variants": hashes.of(sorted((k, str(v)) for k, v in node.variants.items())),
            "target": node.target,
            "flags": hashes.of(sorted(node.flags.items())),
        }
        needed = tuple(dict.fromkeys([*first, *needs]))
        done[key] = Node(key, kind, node.name, node.version, key, needed, "", ingredients)
    return list(done.values())


def _aspects(side: Side, folder: Path, plan: Plan) -> dict[str, str]:
    """Hashes of what is no node: what publishes, validates, concretizes and makes images."""
    references = side.tree / "tests" / "references" / f"{plan.system}.yaml"
    modules = [*(folder / "modules").rglob("*.lua")]
    found = {
        "modules": hashes.of(
            of_paths(modules, folder),
            of_paths([side.tree / "modulefiles" / "spack-module.lua.j2"], side.tree)
            if plan.builder == "spack"
            else "",
        ),
        "settings of the checks": hashes.of(
            of_paths([side.tree / "tests" / "reframe" / "settings.py.j2"], side.tree),
            _without_prose(plan.as_dict()),
        ),
        "references": of_paths([references], side.tree),
    }
    if plan.builder == "spack":
        recipes = [path for path in (side.tree / RECIPES).rglob("*") if path.suffix != ".pyc"]
        texts = {
            str(path.relative_to(folder)): path.read_text()
            for path in (folder / "spack").rglob("*")
            if path.is_file() and path.name != "spack.lock"
        }
        pins = side.tree / "environments" / "policy" / "spack.yaml"
        found["environment"] = hashes.of(
            of_texts(texts), of_paths(recipes, side.tree), of_paths([pins], side.tree)
        )
    if (folder / "image" / "image.json").is_file():
        found["image"] = _image(side, folder)
    return found


PROSE = ("why", "source", "reasons", "title", "passed_over", "fallback", "not_upstream")
"""Keys of a plan that people read and no check does."""


def _without_prose(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_prose(value) for key, value in data.items() if key not in PROSE}
    return [_without_prose(one) for one in data] if isinstance(data, list) else data


def _image(side: Side, folder: Path) -> str:
    """All that decides an image beside the packages in it."""
    image: dict[str, Any] = json.loads((folder / "image" / "image.json").read_text())
    images = side.tree / "images"
    cloud = image.get("cloud", "")
    steps = {step["script"] for step in image.get("steps", [])}
    clouds = {"aws.pkr.hcl", "azure.pkr.hcl", "qemu.pkr.hcl"} - {f"{cloud}.pkr.hcl"}
    provision = [
        path
        for path in (images / "provision").glob("*")
        if path.name in steps or not path.name[:2].isdigit()
    ]
    templates = [path for path in images.glob("*.pkr.hcl") if path.name not in clouds]
    more = [images / "modern.yaml", *(images / "files").rglob("*"), *(images / "tests").glob("*")]
    return hashes.of(
        of_paths((folder / "image").rglob("*"), folder),
        of_paths([*provision, *templates, *more], side.tree),
    )
