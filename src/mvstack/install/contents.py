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


def contents(
    plan: Plan, text_of: Callable[[Node], str], built_by: Callable[[Node], str]
) -> Iterator[Content]:
    """Every node of ``plan`` in build order; ``text_of`` gives the text of its easyconfig.

    A node's hash covers its easyconfig, our code that builds it (``built_by``), the target, and
    what it is built on; so a changed MPI changes all that stands on it, and a changed comment
    changes nothing.
    """
    below: dict[str, str] = {}
    compilers: list[str] = []
    above: dict[str, list[str]] = {}
    for node in build_order(plan):
        own = hashes.normalised(text_of(node), without=NAME if node.kind == "mpi" else "")
        target, code = plan.target + plan.optimization, built_by(node)
        content = hashes.of(
            own,
            target,
            code,
            below.get("compiler", "") if node.kind != "package" else "",
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
                below[node.mpi] = content  # it covers the MPI, and packages load it
                above.setdefault(node.mpi, [*compilers]).append(node.easyconfig)
        ingredients = {"easyconfig": hashes.of(own), "target": target}
        if code:
            ingredients["easyblocks" if node.kind == "mpi" else "toolchain"] = code
        yield Content(node, content, needs, ingredients)
