"""A Spack lock file as nodes and edges. Pure but for :func:`read_lock`, which reads the file.

The format is that of Spack 1.0 and 1.1: lock file version 6, in which compilers are nodes like
others (Spack's ``environment/__init__.py`` describes all versions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from mvstack.model.base import first_error
from mvstack.support.errors import InvalidInput, relative

VERSION = 6
"""The only version of lock files that is read: older ones have no compilers among their nodes."""

RUNTIME = frozenset({"link", "run"})
"""Kinds of edges along which a program needs another package once it is built."""

FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
"""Compiler flags, which the format keeps among the variants."""

Value = bool | str | tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """A dependency: the hash of what is needed, for what, and as which virtual packages."""

    hash: str
    name: str
    types: frozenset[str]
    virtuals: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Node:
    """One concrete package. ``external`` is its prefix when the site provides it, else "".

    ``variants`` are booleans, words, or tuples of words for those that take several.
    """

    hash: str
    name: str
    version: str
    namespace: str = ""
    variants: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    target: str = ""
    os: str = ""
    external: str = ""
    package_hash: str = ""
    dependencies: tuple[Edge, ...] = ()

    def __str__(self) -> str:
        """``name@version/hash`` with seven letters of the hash, as Spack prints it."""
        return f"{self.name}@{self.version}/{self.hash[:7]}"


@dataclass(frozen=True)
class Root:
    """What was asked for: the words, and the hash of what they became."""

    hash: str
    spec: str


@dataclass(frozen=True)
class Lock:
    """All nodes by hash, and the roots; ``file`` names it in errors."""

    file: str
    spack: str
    roots: tuple[Root, ...]
    nodes: Mapping[str, Node]

    def root_nodes(self) -> list[Node]:
        """The nodes of the roots, each once, in the order of the file."""
        return [self.nodes[hash_] for hash_ in dict.fromkeys(root.hash for root in self.roots)]

    def closure(
        self, starts: Iterable[Node], types: frozenset[str] | None = None
    ) -> Iterator[Node]:
        """``starts`` and all they need, each once; along edges of ``types`` only when given."""
        seen: set[str] = set()
        todo = list(starts)
        while todo:
            node = todo.pop()
            if node.hash in seen:
                continue
            seen.add(node.hash)
            yield node
            todo += [
                self.nodes[edge.hash]
                for edge in node.dependencies
                if types is None or edge.types & types
            ]

    def built(self) -> int:
        """How many packages an installation builds: all that no site provides."""
        return sum(not node.external for node in self.nodes.values())


class _Raw(BaseModel):
    """A part of the file; what is not named here is of no interest."""

    model_config = ConfigDict(strict=True)


class _Spack(_Raw):
    version: str = ""
    commit: str | None = None


class _Root(_Raw):
    hash: str
    spec: str


class _Edge(_Raw):
    hash: str
    name: str
    types: list[str] = Field(validation_alias=AliasPath("parameters", "deptypes"))
    virtuals: list[str] | None = Field(None, validation_alias=AliasPath("parameters", "virtuals"))


class _Target(_Raw):
    name: str


class _External(_Raw):
    path: str | None = None
    module: str | list[str] | None = None


class _Spec(_Raw):
    name: str
    version: str
    target: str | _Target = Field(validation_alias=AliasPath("arch", "target"))
    os: str | None = Field(None, validation_alias=AliasPath("arch", "platform_os"))
    namespace: str | None = None
    parameters: dict[str, bool | str | int | float | list[bool | str | int]] = {}
    external: _External | None = None
    package_hash: str | None = None
    dependencies: list[_Edge] = []


class _Head(_Raw):
    kind: Any = Field(None, validation_alias=AliasPath("_meta", "file-type"))
    version: Any = Field(None, validation_alias=AliasPath("_meta", "lockfile-version"))


class _File(_Raw):
    spack: _Spack | None = None
    roots: list[_Root]
    specs: dict[str, _Spec] = Field(alias="concrete_specs")


def read_lock(path: Path) -> Lock:
    """Read the lock file ``path``.

    Raises InvalidInput, naming the file and what is wrong, when it cannot be read or is no lock
    file of the version that Spack 1.1 writes.
    """
    where = relative(path)
    try:
        return parse_lock(path.read_bytes(), where)
    except OSError as error:
        raise _wrong(where, f"cannot be read: {error.strerror}") from None


def parse_lock(text: str | bytes, file: str = "spack.lock") -> Lock:
    """The lock file whose content is ``text``; errors as :func:`read_lock`."""
    try:
        meta = _Head.model_validate_json(text)
        if meta.kind != "spack-lockfile":
            raise _wrong(file, "is no Spack lock file", found=f"file-type: {meta.kind}")
        if meta.version != VERSION:
            what = f"a lock file of version {VERSION} is expected"
            raise _wrong(file, what, found=f"lockfile-version: {meta.version}")
        raw = _File.model_validate_json(text)
    except ValidationError as error:
        raise _wrong(file, f"is no Spack lock file: {first_error(error)}") from None
    spack = " ".join(filter(None, [raw.spack.version, raw.spack.commit])) if raw.spack else ""
    roots = tuple(Root(one.hash, one.spec) for one in raw.roots)
    lock = Lock(file, spack, roots, {key: _node(key, one) for key, one in raw.specs.items()})
    _complete(lock)
    return lock


def _node(hash_: str, raw: _Spec) -> Node:
    values = raw.parameters
    flags = {key: value for key in FLAGS if isinstance(value := values.get(key), list) and value}
    return Node(
        hash=hash_,
        name=raw.name,
        version=raw.version,
        namespace=raw.namespace or "",
        variants={key: _value(value) for key, value in values.items() if key not in FLAGS},
        flags={key: tuple(map(str, words)) for key, words in flags.items()},
        target=raw.target if isinstance(raw.target, str) else raw.target.name,
        os=raw.os or "",
        external=_provided(raw.external) if raw.external else "",
        package_hash=raw.package_hash or "",
        dependencies=tuple(
            Edge(one.hash, one.name, frozenset(one.types), frozenset(one.virtuals or ()))
            for one in raw.dependencies
        ),
    )


def _provided(external: _External) -> str:
    """The prefix of what a site provides, or the modules that bring it."""
    modules = external.module or []
    return external.path or " ".join([modules] if isinstance(modules, str) else modules)


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(map(str, value))
    return value if isinstance(value, bool) else str(value)


def _complete(lock: Lock) -> None:
    """Raise for hashes that the file names and does not hold, and for dependencies in a circle."""
    for root in lock.roots:
        if root.hash not in lock.nodes:
            raise _wrong(lock.file, f"the root {root.spec} is not among concrete_specs")
    for node in lock.nodes.values():
        for edge in node.dependencies:
            if edge.hash not in lock.nodes:
                missing = f"{edge.name}/{edge.hash[:7]}"
                raise _wrong(lock.file, f"{node} needs {missing}, which the file lacks")
    below = {key: [edge.hash for edge in one.dependencies] for key, one in lock.nodes.items()}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        node = lock.nodes[error.args[1][0]]
        raise _wrong(lock.file, f"{node} needs itself, over a circle of dependencies") from None


def _wrong(file: str, message: str, found: str = "") -> InvalidInput:
    todo = "concretize again with the pinned Spack: it is Spack that writes this file"
    return InvalidInput(message, file, found=found, todo=todo)
