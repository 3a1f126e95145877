"""Made-up partitions of the size and shape of Spack's lock files, for tests and benchmarks.

Seeded: the same arguments give the same graph. Names are those of the table of build times
(environments/policy/build-times.yaml), so that jobs take what these packages take. A graph has two
nodes that all others stand on (compiler-wrapper, gcc-runtime), tools and libraries below the MPI in
chains, one MPI, and over it libraries and applications; nothing stands on the latter.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection

from mvstack.ci.graph import Graph, Node
from mvstack.model.build_times import build_times

FIRST = ("compiler-wrapper", "gcc-runtime")
MPI = "MVAPICH"
OVER_MPI = 0.6  # share of a partition's packages
TOOLS = ("Perl", "Python", "CMake", "binutils", "OpenSSL", "GSL", "METIS", "Boost", "OpenBLAS")
TRANSPORTS = ("hwloc", "UCX", "libfabric", "PMIx", "Slurm")
LARGE = ("LLVM", "GCC", "Rust", "Go", "CUDA", "Qt5", "VTK")
NONE = ("Spack's environment", "gmvapich")
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
        tree=f"/apps/mvapich-stack/2026.11/system{number:02}-cpu",
        launcher="srun",
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
    rows = [row.package for row in build_times().estimates if row.package not in NONE]
    below = [*TOOLS, *TRANSPORTS, draw.choice(LARGE)]
    above = [name for name in rows if name not in (*below, *LARGE)]
    draw.shuffle(above)
    count = max(packages - len(FIRST) - 1, 2)
    over = round(packages * OVER_MPI)
    under = count - over
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
    large = set(draw.sample(range(under), min(len(below), under)))
    for position in range(under):
        package = below.pop(0) if position in large else f"lib{position}"
        tools.append(add(package, "package", _some(draw, tools, 3)))
    mpi = add(MPI, "mpi", _some(draw, tools, 8))
    libraries: list[str] = []
    for position in range(over):
        package = above.pop() if above and draw.random() < 0.6 else f"py-{position}"
        application = position > over / 2
        needs = _some(draw, libraries, 6 if application else 3) + _some(draw, tools, 3)
        found = add(package, "package", [mpi, *needs])
        if not application:
            libraries.append(found)
    return shape


def _some(draw: random.Random, among: list[str], most: int) -> list[str]:
    """Up to ``most`` of ``among``: most of what is near, some of what all use."""
    near, old = among[-WINDOW:], among[:WINDOW]
    wanted = [draw.choice(near if draw.random() < 0.6 else old) for _ in range(most) if among]
    return wanted[: draw.randint(0, most)]
