"""The content hash of every node of a plan: one formula for what installs and for what compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mvstack.plan import easyconfigs
from mvstack.plan.types import Plan
from mvstack.plan.usage import NAME
from mvstack.render.partition import Node, build_order
from mvstack.support import hashes


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
    chains: set[str] = set()  # MPIs whose plain toolchain was met
    # what packages may name as a dependency: (name, MPI) → content and easyconfigs
    built: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    for node in build_order(plan):
        text = text_of(node)
        own = hashes.normalised(text, without=NAME if node.kind == "mpi" else "")
        target, code = plan.target + plan.optimization, built_by(node)
        named = easyconfigs.dependencies(text) if node.kind in ("package", "toolchain") else []
        stands_on = [
            found
            for name in named
            if (found := built.get((name, node.mpi)) or built.get((name, ""))) is not None
        ]
        content = hashes.of(
            own,
            target,
            code,
            below.get("compiler", "") if node.kind != "package" or not node.mpi else "",
            below.get(node.toolchain) or below.get(node.mpi, ""),
            # nothing for what names no package: as it was before packages could
            *([[one[0] for one in stands_on]] if stands_on else []),
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
            first = above.get(node.toolchain) or above.get(node.mpi, compilers)
            more = [name for one in stands_on for name in one[1]]
            needs = tuple(dict.fromkeys([*first, *more]))
            if node.kind == "toolchain":
                below[node.easyconfig] = content  # it covers the MPI, and packages load it
                above[node.easyconfig] = [*needs, node.easyconfig]
                if not node.mpi or node.mpi not in chains:
                    chains.add(node.mpi)
                    below[node.mpi] = content
                    above[node.mpi] = [*needs, node.easyconfig]
            else:
                built[node.name, node.mpi] = (content, (*needs, node.easyconfig))
        ingredients = {"easyconfig": hashes.of(own), "target": target}
        if code:
            ingredients["easyblocks" if node.kind == "mpi" else "toolchain"] = code
        yield Content(node, content, needs, ingredients)
