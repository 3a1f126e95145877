"""A Spack lock file as nodes and edges. Pure but for :func:`read_lock`, which reads the file.

The format is that of Spack 1.0 and 1.1: lock file version 6, in which compilers are nodes like
others (Spack's ``environment/__init__.py`` describes all versions).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
    ``build_spec`` is the hash of what it was spliced from, "" when it was built as it is.
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
    build_spec: str = ""
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


def read_lock(path: Path) -> Lock:
    """Read the lock file ``path``.

    Raises InvalidInput, naming the file and what is wrong, when it cannot be read or is no lock
    file of the version that Spack 1.1 writes.
    """
    where = relative(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise _wrong(where, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise _wrong(where, f"is not UTF-8 text: {error.reason} at byte {error.start}") from None
    return parse_lock(text, where)


def parse_lock(text: str, file: str = "spack.lock") -> Lock:
    """The lock file whose content is ``text``; errors as :func:`read_lock`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(file, f"is not JSON: {error}") from None
    meta = _get(data, "_meta", dict, file, "the file")
    if meta.get("file-type") != "spack-lockfile":
        raise _wrong(file, "is no Spack lock file", found=f"file-type: {meta.get('file-type')}")
    if meta.get("lockfile-version") != VERSION:
        raise _wrong(
            file,
            f"a lock file of version {VERSION} is expected",
            found=f"lockfile-version: {meta.get('lockfile-version')}",
            todo="concretize again with the pinned Spack",
        )
    specs = _get(data, "concrete_specs", dict, file, "the file")
    nodes = {hash_: _node(hash_, raw, file) for hash_, raw in specs.items()}
    roots = tuple(
        Root(_get(raw, "hash", str, file, "a root"), _get(raw, "spec", str, file, "a root"))
        for raw in _get(data, "roots", list, file, "the file")
    )
    lock = Lock(file, _spack(data), roots, nodes)
    _complete(lock)
    return lock


def _spack(data: dict[str, Any]) -> str:
    """The Spack that wrote the file: its version, and its commit when the file tells it."""
    spack = data.get("spack")
    if not isinstance(spack, dict):
        return ""
    return " ".join(str(spack[key]) for key in ("version", "commit") if spack.get(key))


def _node(hash_: str, raw: Any, file: str) -> Node:
    name = _get(raw, "name", str, file, f"the package /{hash_[:7]}")
    who = f"{name}/{hash_[:7]}"
    parameters = raw.get("parameters", {})
    if not isinstance(parameters, dict):
        raise _wrong(file, f"{who}: parameters is no mapping")
    arch = _get(raw, "arch", dict, file, who)
    external = raw.get("external")
    build_spec = raw.get("build_spec")
    dependencies = raw.get("dependencies", [])
    if not isinstance(dependencies, list):
        raise _wrong(file, f"{who}: dependencies is no list")
    return Node(
        hash=hash_,
        name=name,
        version=_get(raw, "version", str, file, who),
        namespace=str(raw.get("namespace") or ""),
        variants={
            key: _value(value, file, f"{who}: variant {key}")
            for key, value in parameters.items()
            if key not in FLAGS
        },
        flags={
            key: tuple(str(word) for word in parameters[key])
            for key in FLAGS
            if isinstance(parameters.get(key), list) and parameters[key]
        },
        target=_target(arch, file, who),
        os=str(arch.get("platform_os") or ""),
        external=_external(external) if external else "",
        package_hash=str(raw.get("package_hash") or ""),
        build_spec=str(build_spec.get("hash") or "") if isinstance(build_spec, dict) else "",
        dependencies=tuple(_edge(edge, file, who) for edge in dependencies),
    )


def _external(external: Any) -> str:
    """The prefix of what a site provides, or the module that brings it."""
    if not isinstance(external, dict):
        return str(external)
    modules = external.get("module") or []
    modules = modules if isinstance(modules, list) else [modules]
    return str(external.get("path") or "") or " ".join(map(str, modules)) or "(nowhere)"


def _value(value: Any, file: str, who: str) -> Value:
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, list) and all(isinstance(word, (str, bool, int)) for word in value):
        return tuple(str(word) for word in value)
    if isinstance(value, (int, float)):
        return str(value)
    raise _wrong(file, f"{who} is neither a boolean, a word nor a list of words", found=str(value))


def _target(arch: dict[str, Any], file: str, who: str) -> str:
    """The target's name: families are plain words, others bring all their features."""
    target = arch.get("target")
    name = target.get("name") if isinstance(target, dict) else target
    if not isinstance(name, str):
        raise _wrong(file, f"{who}: arch has no target", found=f"arch: {arch}")
    return name


def _edge(raw: Any, file: str, who: str) -> Edge:
    context = f"{who}: a dependency"
    parameters = _get(raw, "parameters", dict, file, context)
    virtuals = parameters.get("virtuals") or []
    if not isinstance(virtuals, list):
        raise _wrong(file, f"{context}: virtuals is no list", found=str(virtuals)[:80])
    return Edge(
        hash=_get(raw, "hash", str, file, context),
        name=_get(raw, "name", str, file, context),
        types=frozenset(map(str, _get(parameters, "deptypes", list, file, context))),
        virtuals=frozenset(map(str, virtuals)),
    )


def _get(raw: Any, key: str, kind: type[Any], file: str, who: str) -> Any:
    """``raw[key]`` when it is of ``kind``, which the format demands."""
    if not isinstance(raw, dict):
        raise _wrong(file, f"{who} is no mapping", found=str(raw)[:80])
    if key not in raw:
        raise _wrong(file, f"{who} has no {key}", allowed=", ".join(sorted(map(str, raw)))[:200])
    if not isinstance(raw[key], kind):
        what = {"dict": "mapping", "str": "text"}.get(kind.__name__, kind.__name__)
        raise _wrong(file, f"{who}: {key} is no {what}", found=str(raw[key])[:80])
    return raw[key]


def _complete(lock: Lock) -> None:
    """Raise for hashes that the file names and does not hold, and for dependencies in a circle."""
    for root in lock.roots:
        if root.hash not in lock.nodes:
            raise _wrong(lock.file, f"the root {root.spec} is not among concrete_specs")
    for node in lock.nodes.values():
        for edge in node.dependencies:
            if edge.hash not in lock.nodes:
                raise _wrong(
                    lock.file, f"{node} needs {edge.name}/{edge.hash[:7]}, which the file lacks"
                )
    done: set[str] = set()
    open_: set[str] = set()
    for start in lock.nodes.values():
        stack = [(start, False)]
        while stack:
            node, left = stack.pop()
            if left:
                open_.discard(node.hash)
                done.add(node.hash)
            elif node.hash in open_:
                raise _wrong(lock.file, f"{node} needs itself, over a circle of dependencies")
            elif node.hash not in done:
                open_.add(node.hash)
                stack.append((node, True))
                below = (lock.nodes[edge.hash] for edge in node.dependencies)
                stack += [(one, False) for one in below if one.hash not in done]


def _wrong(
    file: str, message: str, found: str = "", allowed: str = "", todo: str = ""
) -> Exception:
    return InvalidInput(
        message,
        file,
        found=found,
        allowed=allowed,
        todo=todo or "it is Spack that writes this file: concretize again",
    )
