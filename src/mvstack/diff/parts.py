"""The parts of a rendered plan that are built, each with what decides it. Reads files, no more.

A part's ingredients are named, so that a difference says what it comes from. Comments, docstrings
and layout of recipes, easyconfigs and YAML are no ingredients.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.diff.sides import Side
from mvstack.model.yamlfile import parse_yaml
from mvstack.plan import easyconfigs
from mvstack.plan.definitions import definitions
from mvstack.plan.usage import NAME
from mvstack.render.partition import Node
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Problem

RECIPES = Path("spack-repo") / "spack_repo" / "mvapich_stack"
MADE_BY_HAND = (".py", ".eb", ".patch", ".yaml", ".lua", ".c", ".f90", ".txt")


@dataclass(frozen=True)
class Part:
    """An MPI build or a package. ``key`` is the same on both sides for what is compared."""

    key: str
    kind: str
    name: str
    version: str
    ingredients: dict[str, str]

    @property
    def label(self) -> str:
        """How it is called in a list: ``mvapich 4.1``."""
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Partition:
    """What one partition builds, and the recipes of ours that no part is called after."""

    name: str
    builder: str
    parts: dict[str, Part]
    other_recipes: dict[str, str] = field(default_factory=dict)


def read_partitions(side: Side) -> dict[str, Partition]:
    """Every partition that ``side`` rendered, by ``system/partition``."""
    return {
        "/".join(path.parent.relative_to(side.rendered).parts): read_partition(side, path.parent)
        for path in sorted(side.rendered.glob("*/*/plan.json"))
    }


def read_partition(side: Side, folder: Path) -> Partition:
    """One partition. Raises InvalidInput for a plan whose fields are not those known here."""
    name = "/".join(folder.relative_to(side.rendered).parts)
    try:
        plan = json.loads((folder / "plan.json").read_text())
        reading = _easybuild if plan["builder"] == "easybuild" else _spack
        return reading(side, folder, plan, name)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            Problem(
                "its plan is not one that can be compared with those of now",
                f"{side.name}: {name}",
                found=f"{type(error).__name__}: {error}",
                todo="compare with a newer revision",
            )
        ) from None


def _parts(plan: dict[str, Any], mpi: Any, package: Any) -> dict[str, Part]:
    """``mpi`` and ``package`` give the ingredients of an entry of the plan."""
    parts: dict[str, Part] = {}
    below: dict[str, Part] = {}
    for build in plan["mpi"]:
        key = f"{build['product']} {build['device']}"
        own = {"version": build["version"], **mpi(build)}
        parts[key] = below[build["module"]] = Part(
            key, "mpi", build["module"].rpartition("/")[0], build["module"].rpartition("/")[2], own
        )
    for entry in plan["packages"]:
        under = below.get(entry["mpi"])
        key = f"{entry['name']} over {under.key if under else 'no MPI'}"
        own = {"version": entry["version"], **package(entry)}
        if under:
            own["the MPI below it"] = hashes.of(under.key, under.ingredients)
        parts[key] = Part(key, "package", entry["name"], entry["version"], own)
    return parts


def _easybuild(side: Side, folder: Path, plan: dict[str, Any], name: str) -> Partition:
    """The ingredients are those that :mod:`mvstack.tree.nodes` hashes."""
    ours = {path.name: path for path in (side.tree / "easyconfigs").rglob("*.eb")}
    built_by = definitions(side.tree / "easyconfigs")

    def easyconfig(file: str) -> str:
        own = folder / "easyconfigs" / file
        path = own if own.is_file() else easyconfigs.source_of(file, ours)
        # what the help of an MPI's module says is no ingredient: mvstack.plan.usage
        text = easyconfigs.text_over(file, path) if path else ""
        return hashes.of(hashes.normalised(text, without=NAME)) if path else f"{file}, not ours"

    compiler = {key: plan["compiler"][key] for key in ("name", "version", "origin")}
    gcc = f"{compiler['version']}.eb"
    target = {"target": plan["target"], "options": plan.get("optimization", "")}
    common = {
        **target,
        "compiler": hashes.of(compiler, easyconfig(f"GCCcore-{gcc}"), easyconfig(f"GCC-{gcc}")),
    }

    def mpi(build: dict[str, Any]) -> dict[str, str]:
        node = Node(
            build["easyconfig"], build["software"], build["version"], build["module"], "", "mpi"
        )
        own = easyconfig(build["easyconfig"])
        return {"easyconfig": own, "easyblocks": built_by(node), **common}

    def package(entry: dict[str, Any]) -> dict[str, str]:
        node = Node(
            entry["easyconfig"],
            entry["name"],
            entry["version"],
            entry["module"],
            entry["mpi"],
            "package",
        )
        own = f"{entry['name']}-{entry['version']}-"
        under = entry.get("toolchain") or entry["easyconfig"].removeprefix(own)
        found = {
            "easyconfig": easyconfig(entry["easyconfig"]),
            "toolchain": hashes.of(built_by(node), easyconfig(under)),
            **target,
        }
        if below := stands_on(entry["easyconfig"], entry["mpi"]):
            found["what it is built on"] = hashes.of(below)
        return found

    def stands_on(file: str, mpi: str) -> list[str]:
        """The easyconfigs of the packages of this plan that ``file`` names, and of theirs."""
        path = easyconfigs.source_of(file, ours)
        names = easyconfigs.dependencies(path.read_text()) if path else []
        rows = [
            row["easyconfig"]
            for row in plan["packages"]
            if row["name"] in names and row["mpi"] in (mpi, "") and row["easyconfig"] != file
        ]
        return [text for row in rows for text in (easyconfig(row), *stands_on(row, mpi))]

    return Partition(name, plan["builder"], _parts(plan, mpi, package))


def _spack(side: Side, folder: Path, plan: dict[str, Any], name: str) -> Partition:
    """Without a lock file: what decides a part by name, and the requirements that all share."""
    recipes = _recipes(side.tree / RECIPES)
    required = _yaml(folder / "spack" / "packages.yaml").get("packages", {})
    policy = _yaml(side.tree / "environments" / "policy" / "spack.yaml")
    pins = [policy.get(name, {}).get("commit", "") for name in ("spack", "packages")]
    named = {_package_of(entry) for entry in [*plan["mpi"], *plan["packages"]]}
    shared = {
        "target": plan["target"],
        "compiler": hashes.of(plan["compiler"]),
        "externals and requirements": hashes.of(
            {key: value for key, value in required.items() if key not in named}
        ),
        "pinned Spack": hashes.of(pins),
        "helpers of the recipes": recipes.pop("", ""),
    }

    def own(entry: dict[str, Any], spec: str) -> dict[str, str]:
        package = _package_of(entry)
        return {
            "spec": spec,
            "recipe": recipes.get(package, ""),
            "requirements": hashes.of(required.get(package)),
            **shared,
        }

    def mpi(build: dict[str, Any]) -> dict[str, str]:
        said = build.get("spack") or {}
        transport = (said.get("transport") or {}).get("spec", "")
        return {**own(build, said.get("spec", "")), "transport": transport}

    def package(entry: dict[str, Any]) -> dict[str, str]:
        return own(entry, entry.get("spack") or "")

    parts = _parts(plan, mpi, package)
    others = {key: value for key, value in recipes.items() if key not in named}
    return Partition(name, plan["builder"], parts, others)


def _package_of(entry: dict[str, Any]) -> str:
    """The package of Spack that an MPI or a package of a plan is."""
    said = entry.get("spack") or ""
    if isinstance(said, dict):
        return str(said.get("package") or entry.get("product", ""))
    return said.partition("@")[0].split()[0] if said else str(entry.get("name", "")).lower()


def _recipes(repo: Path) -> dict[str, str]:
    """Hash of every recipe by package name; "" for what recipes share (``build_systems/``)."""
    found = {"": hashes.of_files(sorted((repo / "build_systems").glob("**/*.py")))}
    for folder in sorted((repo / "packages").glob("*/")):
        files = [
            path
            for path in folder.rglob("*")
            if path.is_file()
            and path.suffix in MADE_BY_HAND
            and path.relative_to(folder).parts[0] not in ("test", "__pycache__")
        ]
        if files:
            name = folder.name.lstrip("_").replace("_", "-")
            found[name] = hashes.of([path.name for path in sorted(files)], hashes.of_files(files))
    return found


def _yaml(path: Path) -> dict[str, Any]:
    """A YAML file's content, {} where there is none."""
    data = parse_yaml(path.read_text(), path).data if path.is_file() else {}
    return data if isinstance(data, dict) else {}
