"""The graph of a plan: nodes with key, needs, content hash and reason. Made here, read everywhere.

What changed, what is installed, what a cache has and what a pipeline must do are questions about
these nodes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mvstack.support.hashes import reached

SHOWN = 60
"""Ingredients up to this long are shown as words; longer ones are hashes."""


OF_MPI = "MPI "
"""The names of ingredients that may make another MPI begin so."""

PROSE = (
    *("why", "source", "reasons", "title", "passed_over", "fallback", "not_upstream"),
    *("left_out", "group", "licence", "secure_boot_why"),
)
"""Fields of plans and policies that people read and nothing else does."""


@dataclass(frozen=True)
class Node:
    """One thing that a builder makes. ``key`` is its easyconfig, DAG hash, or place in the plan.

    ``content`` is the hash of all that decides it; ``needs`` are the keys of what it stands on.
    ``ingredients`` are its own, by name, so that a difference says what it comes from. ``file`` is
    its module below the tree's ``modules``, and ``toolchain`` the key of what a package is built
    with.
    """

    key: str
    kind: str
    name: str
    version: str
    content: str = ""
    needs: tuple[str, ...] = ()
    mpi: str = ""
    ingredients: dict[str, str] = field(default_factory=dict)
    module: str = ""
    toolchain: str = ""
    file: str = ""
    why: str = ""

    @property
    def label(self) -> str:
        """``mvapich 4.1-ucx``, ``HPCC 1.5.0``, or ``HPCC 1.5.0 over mpich/4.0.2-ofi``."""
        if self.kind == "mpi" and self.module:
            return self.module.replace("/", " ")
        return f"{self.name} {self.version}".rstrip() + (f" over {self.mpi}" if self.mpi else "")

    @property
    def title(self) -> str:
        """``HPCC 1.5.0 for mvapich/4.1-ucx``, in progress."""
        return f"{self.name} {self.version}" + (f" for {self.mpi}" if self.mpi else "")

    @property
    def device(self) -> str:
        """The part of its MPI's version that tells the device: ``ucx`` of ``mvapich/4.1-ucx``."""
        return (self.mpi or self.module if self.kind == "mpi" else self.mpi).rpartition("-")[2]

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is apart from its version: the same before and after a change."""
        return (self.kind, self.name, self.mpi.partition("/")[0], self.device)


@dataclass(frozen=True)
class Graph:
    """The nodes of ``name`` (``system/partition``) by key, each after what it stands on.

    ``by`` says what they were made from: ``easyconfigs``, ``lock file`` or ``plan``. ``others`` are
    hashes of recipes of ours that no node is named after, but that a solver may use. ``tree`` is
    the folder that it is installed into, where that is known.
    """

    name: str
    builder: str
    by: str
    nodes: dict[str, Node]
    others: dict[str, str] = field(default_factory=dict, kw_only=True)
    tree: str = field(default="", kw_only=True)

    def closure(self, keys: Iterable[str]) -> set[str]:
        """``keys`` and all that they stand on."""
        return set(reached(keys, lambda key: self.nodes[key].needs))


def without_prose(data: Any, more: tuple[str, ...] = ()) -> Any:
    """``data`` without the fields of :data:`PROSE`, and without those named in ``more``."""
    if isinstance(data, dict):
        return {
            key: without_prose(value, more)
            for key, value in data.items()
            if key not in PROSE and key not in more
        }
    return [without_prose(one, more) for one in data] if isinstance(data, list) else data


def pairs(old: Graph, new: Graph) -> Iterator[tuple[Node | None, Node | None]]:
    """What differs: a node as it was and as it is, None where it is added or gone.

    Nodes of one identity whose contents are on one side alone are matched in their order.
    """
    had = {node.content for node in old.nodes.values()}
    has = {node.content for node in new.nodes.values()}
    left: dict[tuple[str, ...], list[Node]] = {}
    for node in old.nodes.values():
        if node.content not in has:
            left.setdefault(node.identity, []).append(node)
    for node in new.nodes.values():
        if node.content not in had:
            before = left.get(node.identity)
            yield before.pop(0) if before else None, node
    for rest in left.values():
        yield from ((node, None) for node in rest)


def differing(old: Node, new: Node) -> list[str]:
    """The names of the ingredients that are not as they were."""
    names = dict.fromkeys([*new.ingredients, *old.ingredients])
    return [name for name in names if old.ingredients.get(name) != new.ingredients.get(name)]


def reasons(old: Node, new: Node) -> tuple[str, ...]:
    """Why a node is not as it was, by its own ingredients; () when only what it stands on changed.

    Both values are shown where they are words.
    """
    differ, said = differing(old, new), []
    if old.version != new.version:
        said.append(f"version {old.version} → {new.version}")
        differ = [name for name in differ if name not in ("version", "easyconfig")]
    for name in differ:
        before, after = old.ingredients.get(name, ""), new.ingredients.get(name, "")
        words = before and after and len(before) <= SHOWN and len(after) <= SHOWN
        said.append(f"{name} {before} → {after}" if words else name)
    return tuple(said)
