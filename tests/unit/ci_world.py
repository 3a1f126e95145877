"""Made-up partitions of the size and shape of Spack's lock files, for tests.

Seeded: the same arguments give the same graph. A graph has two nodes that all others stand on
(compiler-wrapper, gcc-runtime), libraries below the MPI in chains, one MPI, and over it libraries
and applications; nothing stands on the latter.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection

from mvstack.ci.graph import Graph
from mvstack.plan.graph import Node

FIRST = ("compiler-wrapper", "gcc-runtime")
MPI = "MVAPICH"
OVER_MPI = 0.6  # share of a partition's packages
WINDOW = 12
"""How far back in build order a library's needs lie: what makes chains, and their length."""


def world(
    systems: int, packages: int, changed: Collection[tuple[int, str]] = ()
) -> dict[str, Graph]:
    """``systems`` partitions; ``changed`` are nodes of :func:`names`, each with its system."""
    return {
        f"system{number:02}/cpu": partition(
            number, packages, {name for system, name in changed if system == number}
        )
        for number in range(systems)
    }


def partition(number: int, packages: int, changed: Collection[str] = ()) -> Graph:
    """A partition of ``packages`` nodes; those named in ``changed`` have other sources."""
    shape = _shape(number, packages)
    keys: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    for name, (package, kind, below) in shape.items():
        needs = tuple(keys[one] for one in below)
        text = f"{number} {name} {name in changed} {' '.join(needs)}"
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        recipe = {"recipe": str(name in changed)}
        nodes[key] = Node(key, kind, package, "1.0", key, needs, "", recipe)
        keys[name] = key
    return Graph(
        name=f"system{number:02}/cpu",
        builder="spack",
        by="lock file",
        os="debian12",
        target="zen3",
        gpu="none",
        nodes=nodes,
        aspects={"modules": "0", "references": "0", "environment": "0"},
    )


def names(number: int, packages: int) -> dict[str, list[str]]:
    """Of a partition: the MPI, those that nothing stands on (tops), what all stand on."""
    shape = _shape(number, packages)
    needed = {one for _, _, below in shape.values() for one in below}
    return {
        "mpi": [name for name, (_, kind, _) in shape.items() if kind == "mpi"],
        "tops": [name for name in shape if name not in needed],
        "first": list(shape)[: len(FIRST)],
    }


def _shape(number: int, packages: int) -> dict[str, tuple[str, str, list[str]]]:
    """Name in the shape → package, kind and what it stands on, in build order."""
    draw = random.Random(f"{number}/{packages}")
    count = max(packages - len(FIRST) - 1, 2)
    over = round(packages * OVER_MPI)
    shape: dict[str, tuple[str, str, list[str]]] = {}

    def add(package: str, kind: str, needs: list[str]) -> str:
        name = f"{package}#{len(shape)}"
        shape[name] = (package, kind, [*firsts, *dict.fromkeys(needs)])
        return name

    firsts: list[str] = []
    for package in FIRST:
        name = add(package, "package", [])
        firsts = [*firsts, name]
    tools: list[str] = []
    for position in range(count - over):
        tools.append(add(f"lib{position}", "package", _some(draw, tools, 3)))
    mpi = add(MPI, "mpi", _some(draw, tools, 8))
    libraries: list[str] = []
    for position in range(over):
        application = position > over / 2
        needs = _some(draw, libraries, 6 if application else 3) + _some(draw, tools, 3)
        found = add(f"app{position}", "package", [mpi, *needs])
        if not application:
            libraries.append(found)
    return shape


def _some(draw: random.Random, among: list[str], most: int) -> list[str]:
    """Up to ``most`` of ``among``: most of what is near, some of what all use."""
    near, old = among[-WINDOW:], among[:WINDOW]
    wanted = [draw.choice(near if draw.random() < 0.6 else old) for _ in range(most) if among]
    return wanted[: draw.randint(0, most)]
