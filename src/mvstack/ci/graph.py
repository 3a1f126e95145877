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

from mvstack.ci.checks import Checked, read_checks
from mvstack.ci.meaning import meaning, of_paths
from mvstack.diff.parts import RECIPES, read_partition
from mvstack.diff.sides import Side
from mvstack.model.spack_lock import Lock, read_lock
from mvstack.plan.contents import contents
from mvstack.plan.definitions import definitions
from mvstack.plan.easyconfigs import source_of, text_over
from mvstack.plan.types import Plan, plan_of
from mvstack.plan.usage import usage_of
from mvstack.render.partition import Node as PlanNode
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Problem

WHOLE = "whole"
"""Key of the node that stands for all of a Spack partition whose lock file is not known yet."""

OF_MPI = "MPI "
"""So begin the names of its ingredients that may make another MPI."""


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

    @property
    def state(self) -> str:
        """One hash of all that is built, checked and published: what a deployment is of."""
        return hashes.of(
            [node.content for node in self.nodes.values()],
            {name: value for name, value in self.aspects.items() if name != "image"},
        )

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
        environment = _environment(side, folder) if plan.builder == "spack" else {}
        by, nodes = _nodes(side, folder, plan, name, locks, environment)
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
            aspects=_aspects(side, folder, plan, environment),
            checks={
                file: one
                for file, one in checks.items()
                if not one.software or one.software & {package.name for package in plan.packages}
            },
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
    side: Side,
    folder: Path,
    plan: Plan,
    name: str,
    locks: Path | None,
    ingredients: dict[str, str],
) -> tuple[str, list[Node]]:
    if plan.builder == "easybuild":
        return "easyconfigs", _easybuild(side, folder, plan)
    files = [locks / name / "spack.lock"] if locks else []
    for file in [*files, folder / "spack" / "spack.lock"]:
        if file.is_file():
            compiler = file.parent / "compiler" / "spack.lock"
            below = _locked(read_lock(compiler), plan) if compiler.is_file() else []
            return "lock file", [*below, *_locked(read_lock(file), plan, below)]
    whole = Node(
        WHOLE, "whole", "Spack's environment", "", hashes.of(ingredients), ingredients=ingredients
    )
    return "plan", [whole]


def _environment(side: Side, folder: Path) -> dict[str, str]:
    """All that decides what Spack's solver answers and what is built then, by name.

    Not in it: modules.yaml, which is for use by hand, and mirrors.yaml, which says where a source
    with the same hash lies. packages.yaml is in the ingredients of the parts.
    """
    parts = read_partition(side, folder)
    found = {
        f"{OF_MPI if part.kind == 'mpi' else ''}{part.label}: {name}": value
        for part in parts.parts.values()
        for name, value in part.ingredients.items()
    }
    found |= {f"recipe {name}": value for name, value in parts.other_recipes.items()}
    files = folder / "spack"
    pins = side.tree / "environments" / "policy" / "spack.yaml"
    shared = [side.tree / RECIPES / "repo.yaml", *(side.tree / RECIPES).glob("*.py")]
    solver = [files / "concretizer.yaml", files / "config.yaml", files / "compiler" / "spack.yaml"]
    return {
        **found,
        f"{OF_MPI}and packages: solver": of_paths(solver, folder),
        f"{OF_MPI}and packages: pinned Spack": hashes.of(
            _without_prose(meaning(pins.name, pins.read_text())) if pins.is_file() else None
        ),
        f"{OF_MPI}and packages: modules of the recipes": of_paths(shared, side.tree),
        "specs": of_paths([files / "spack.yaml"], folder),
    }


def _easybuild(side: Side, folder: Path, plan: Plan) -> list[Node]:
    ours = {path.name: path for path in sorted((side.tree / "easyconfigs").rglob("*.eb"))}
    built_by = definitions(side.tree / "easyconfigs")

    def text_of(node: PlanNode) -> str:
        own = folder / "easyconfigs" / node.easyconfig
        if own.is_file():
            return own.read_text()
        on_compiler = node.kind == "compiler" or (node.kind == "package" and not node.mpi)
        path = source_of(node.easyconfig, ours)
        for_system = path is not None and "system" in path.relative_to(side.tree).parts
        if on_compiler and (path is None or for_system) and plan.compiler["origin"] != "system":
            return node.easyconfig
        if path is None:
            raise KeyError(node.easyconfig)
        return text_over(node.easyconfig, path)

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
        for one in contents(plan, text_of, built_by)
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


def _aspects(side: Side, folder: Path, plan: Plan, environment: dict[str, str]) -> dict[str, str]:
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
        "help of the modules": _help(side, folder, plan),
        "settings of the checks": hashes.of(
            of_paths([side.tree / "tests" / "reframe" / "settings.py"], side.tree),
            _without_prose(plan.as_dict(), OTHERS_WORDS.get(plan.builder, ())),
        ),
        "references": of_paths([references], side.tree),
    }
    if plan.builder == "spack":
        found["environment"] = hashes.of(environment)
    if (folder / "image" / "image.json").is_file():
        found["image"] = _image(side, folder)
    return found


def _help(side: Side, folder: Path, plan: Plan) -> str:
    """Words that the modules of MPIs show; no image and no build is made anew for them."""
    if plan.builder == "easybuild":
        files = [folder / "easyconfigs" / build.easyconfig for build in plan.mpi]
        return hashes.of([usage_of(file.read_text()) for file in files if file.is_file()])
    template = side.tree / "modulefiles" / "mpi_usage.txt.j2"
    words = [[build.why, build.launch, build.environment] for build in plan.mpi]
    return hashes.of(words, template.read_text() if template.is_file() else "")


PROSE = (
    *("why", "source", "reasons", "title", "passed_over", "fallback", "not_upstream"),
    *("left_out", "group", "licence"),
    "secure_boot_why",
)
"""Keys of plans and policies that people read and nothing else does."""

OTHERS_WORDS = {"easybuild": ("spack", "variants"), "spack": ("easyconfig", "parameters")}
"""Keys of a plan that are for the builder which does not build it."""


def _without_prose(data: Any, more: tuple[str, ...] = ()) -> Any:
    if isinstance(data, dict):
        return {
            key: _without_prose(value, more)
            for key, value in data.items()
            if key not in PROSE and key not in more
        }
    return [_without_prose(one, more) for one in data] if isinstance(data, list) else data


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
    more = [*(images / "files").rglob("*"), *(images / "tests").glob("*")]
    rendered = [path for path in (folder / "image").rglob("*") if path.name != "image.json"]
    image.pop("generated", None)
    return hashes.of(
        _without_prose(image),
        image.get("source"),  # of Packer's template, and no prose
        of_paths(rendered, folder),
        of_paths([*provision, *templates, *more], side.tree),
    )
