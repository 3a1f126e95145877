"""The graph of what Spack builds: by its lock file where there is one, else by the plan."""

import json
import re
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path

from mvstack.builders.base import Rendered
from mvstack.model.meaning import meaning, of_paths, of_texts
from mvstack.model.spack_lock import Lock, Node, read_lock
from mvstack.plan import graph
from mvstack.plan.spack import MENDS, RECIPES, package_of, spack_graph
from mvstack.plan.types import Plan
from mvstack.support import hashes
from mvstack.support.errors import InvalidInput, Missing
from mvstack.support.home import home


def resolve(rendered: Rendered) -> graph.Graph:
    """The nodes of a partition. Raises InvalidInput for a lock that cannot be read."""
    plan = rendered.plan
    asked = spack_graph(plan, rendered.files, rendered.repository)
    if rendered.lock is None:
        return asked
    compiler = rendered.lock.parent / "compiler" / "spack.lock"
    nodes = locked(read_lock(compiler), plan) if compiler.is_file() else {}
    nodes |= locked(read_lock(rendered.lock), plan, tuple(nodes))
    return graph.Graph(asked.name, plan.builder, "lock file", nodes)


def locked(lock: Lock, plan: Plan, below: tuple[str, ...] = ()) -> dict[str, graph.Node]:
    """The packages of a lock file that are built, each after ``below`` and what it stands on."""
    mpis = {package_of(mpi) for mpi in plan.mpi}
    found: dict[str, graph.Node] = {}
    for node in pending(lock, ()):
        edges = [(lock.nodes[edge.hash], edge) for edge in node.dependencies]
        own = {"version": node.version, "recipe": node.package_hash}
        for name, value in node.variants.items():
            own[f"variant {name}"] = ",".join(value) if isinstance(value, tuple) else str(value)
        own |= {"target": node.target, "operating system": node.os}
        own |= {name: " ".join(words) for name, words in node.flags.items()}
        own |= {f"external {one.name}": one.hash for one, _ in edges if one.external}
        needs = [one.hash for one, _ in edges if not one.external]
        found[node.hash] = graph.Node(
            node.hash,
            "mpi" if node.name in mpis else "package",
            node.name,
            node.version,
            node.hash,
            tuple(dict.fromkeys([*below, *needs])),
            ingredients={name: value for name, value in own.items() if value},
        )
    return found


def pending(
    lock: Lock,
    installed: Container[str],
    offered: Container[str] = (),
    roots: Iterable[str] | None = None,
) -> list[Node]:
    """What must be installed so that every root is, what it stands on first.

    What only a build needs counts as long as that build is to be done, so not for what is
    ``offered`` by a cache.
    """
    found: dict[str, None] = {}
    seen: set[str] = set()
    starts = [root.hash for root in lock.roots] if roots is None else list(roots)
    todo = [(key, False) for key in reversed(starts)]
    while todo:
        key, ready = todo.pop()
        node = lock.nodes[key]
        there = key in installed or bool(node.external)
        if ready:
            found[key] = None
        elif key not in seen:
            seen.add(key)
            if not there:
                todo.append((key, True))
            build = not (there or key in offered)
            needed = [one for one in node.dependencies if build or one.types & {"link", "run"}]
            todo += [(edge.hash, False) for edge in reversed(needed)]
    return [lock.nodes[key] for key in found]


def read(file: Path) -> Lock:
    """The lock of a tree. Raises Missing when it is damaged: deleting it heals that."""
    try:
        return read_lock(file)
    except InvalidInput as error:
        (problem,) = error.problems
        raise Missing(
            f"this is not a lock file: {problem.message}",
            str(file),
            found=problem.found,
            todo="remove it; the same command concretizes anew",
        ) from None


def installed(store: Path) -> dict[str, Path]:
    """What Spack's database of ``store`` calls installed: hash → prefix; {} when there is none."""
    try:
        rows = json.loads((store / ".spack-db" / "index.json").read_text())["database"]["installs"]
        return {key: Path(row["path"]) for key, row in rows.items() if row.get("installed")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def environment(rendered: Rendered) -> dict[str, str]:
    """Hashes, by name, of all that decides what Spack's solver answers and what is built then.

    Not in it: modules.yaml, which is for use by hand, and mirrors.yaml, which says where a source
    with the same hash lies. packages.yaml is in the ingredients of the nodes.
    """
    asked = spack_graph(rendered.plan, rendered.files, rendered.repository)
    found = {
        f"{graph.OF_MPI if node.kind == 'mpi' else ''}{node.label}: {name}": value
        for node in asked.nodes.values()
        for name, value in node.ingredients.items()
    }
    found |= {f"recipe {name}": value for name, value in asked.others.items()}
    own = [rendered.repository / one for one in (RECIPES, MENDS)]
    pins = replace(home(), data=rendered.repository).file("policy", "spack.yaml")
    python = rendered.repository / "requirements" / "spack.txt"
    solver = ("spack/concretizer.yaml", "spack/config.yaml", "spack/compiler/spack.yaml")
    names = {
        "solver": _of(rendered, *solver),
        "pinned Spack": hashes.of(
            graph.without_prose(meaning(pins.name, pins.read_text())) if pins.is_file() else None,
            re.findall(r"^\S+==\S+", python.read_text(), re.M) if python.is_file() else None,
        ),
        "modules of the recipes": of_paths(
            [path for one in own for path in (one / "repo.yaml", *one.glob("*.py"))],
            rendered.repository,
        ),
    }
    found |= {f"{graph.OF_MPI}and packages: {name}": value for name, value in names.items()}
    return {**found, "specs": _of(rendered, "spack/spack.yaml")}


def shown(rendered: Rendered) -> tuple[object, object]:
    """The template of modules; the words and the template of the help of an MPI's module."""
    templates = rendered.repository / "modulefiles"
    usage = [*templates.glob("mpi_usage.*"), *templates.glob("job.*")]
    words = [[build.why, build.launch, build.environment] for build in rendered.plan.mpi]
    own = of_paths([templates / "spack-module.lua.j2"], rendered.repository)
    return own, [words, of_paths(usage, rendered.repository)]


def _of(rendered: Rendered, *names: str) -> str:
    return of_texts({name: rendered.files[name] for name in names if name in rendered.files})
