"""The content hash of every node of a plan: one formula for what installs and for what compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mvstack import hashes
from mvstack.install.usage import NAME
from mvstack.plan import Plan
from mvstack.render import Node, build_order


@dataclass(frozen=True)
class Content:
    """A node of EasyBuild's with its content hash and the easyconfigs that it stands on.

    ``ingredients`` are its own, by name: what it stands on is not among them.
    """

    node: Node
    content: str
    needs: tuple[str, ...]
    ingredients: dict[str, str]


def contents(plan: Plan, text_of: Callable[[Node], str], easyblocks: str) -> Iterator[Content]:
    """Every node of ``plan`` in build order; ``text_of`` gives the text of its easyconfig.

    A node's hash covers its easyconfig, the easyblocks for an MPI, the target, and what it is built
    on; so a changed MPI changes all that stands on it, and a changed comment changes nothing.
    ``easyblocks`` is the hash of those.
    """
    below: dict[str, str] = {}
    compilers: list[str] = []
    above: dict[str, list[str]] = {}
    for node in build_order(plan):
        own = hashes.normalised(text_of(node), without=NAME if node.kind == "mpi" else "")
        target, blocks = plan.target + plan.optimization, easyblocks if node.kind == "mpi" else ""
        content = hashes.of(
            own,
            target,
            blocks,
            below.get("compiler", "") if node.kind in ("mpi", "toolchain") else "",
            below.get(node.mpi, ""),
        )
        if node.kind == "compiler":
            below["compiler"] = content
            needs = tuple(compilers)
            compilers.append(node.easyconfig)
        elif node.kind == "mpi":
            below[node.module] = content
            needs = tuple(compilers)
            above[node.module] = [*compilers, node.easyconfig]
        else:
            needs = tuple(above.get(node.mpi, compilers))
            if node.kind == "toolchain":
                above.setdefault(node.mpi, [*compilers]).append(node.easyconfig)
        ingredients = {"easyconfig": hashes.of(own), "target": target, "easyblocks": blocks}
        yield Content(node, content, needs, ingredients)
