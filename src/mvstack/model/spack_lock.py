"""A Spack lock file as nodes and edges. Pure but for :func:`read_lock`, which reads the file.

The format is that of Spack 1.0 and 1.1: lock file version 6, in which compilers are nodes like
others (Spack's ``environment/__init__.py`` describes all versions).
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as part

from mvstack.model.base import first_error
from mvstack.support.errors import InvalidInput, relative, telling
from mvstack.support.hashes import reached

VERSION = 6
"""The only version of lock files that is read: older ones have no compilers among their nodes."""

RUNTIME = frozenset({"link", "run"})
"""Kinds of edges along which a program needs another package once it is built."""

FLAGS = ("cflags", "cppflags", "cxxflags", "fflags", "ldflags", "ldlibs")
"""Compiler flags, which the format keeps among the variants."""

Value = bool | str | tuple[str, ...]

# what a file says beyond these parts of it is of no interest
AS_WRITTEN = ConfigDict(populate_by_name=True, defer_build=True)


def _value(value: Any) -> Any:
    """A variant's value with its numbers in words."""
    if isinstance(value, (list, tuple)):
        return tuple(map(str, value))
    return str(value) if type(value) in (int, float) else value


def _parameters(parameters: Any, flags: bool = False) -> Any:
    """The compiler's flags among the parameters of a package, or the variants."""
    if not isinstance(parameters, dict):
        return parameters
    kept = {key: _value(value) for key, value in parameters.items() if (key in FLAGS) == flags}
    return {key: words for key, words in kept.items() if words or not flags}


def _target(target: Any) -> Any:
    """A target is a name, or described with it."""
    return target.get("name") if isinstance(target, dict) else target


def _provided(external: Any) -> Any:
    """The prefix of what a site provides, or the modules that bring it."""
    match external:
        case {"path": str(place)} | {"module": str(place)}:
            return place
        case {"module": [*names]}:
            return " ".join(map(str, names))
    return external


def _with_hashes(specs: Any) -> Any:
    """Each spec stands under its hash, and says what hash its fields make."""
    if not isinstance(specs, dict):
        return specs
    return {
        key: {**one, "hash": key, "digest": digest(one) if one.get("hash") == key else ""}
        if isinstance(one, dict)
        else one
        for key, one in specs.items()
    }


def digest(spec: Mapping[str, Any]) -> str:
    """The hash that Spack gives to a spec of a lock file: of its JSON, in the order of the file.

    An external is hashed before it is given its namespace.
    """
    left = ("hash", "namespace") if "external" in spec else ("hash",)
    kept = {key: value for key, value in spec.items() if key not in left}
    text = json.dumps(kept, separators=(",", ":"))
    return base64.b32encode(hashlib.sha1(text.encode()).digest()).decode().lower()


@part(frozen=True, config=AS_WRITTEN)
class Edge:
    """A dependency: the hash of what is needed, for what, and as which virtual packages."""

    hash: str
    name: str
    types: frozenset[str] = Field(validation_alias=AliasPath("parameters", "deptypes"))
    virtuals: frozenset[str] = Field(
        default=frozenset(), validation_alias=AliasPath("parameters", "virtuals")
    )


@part(frozen=True, config=AS_WRITTEN)
class Node:
    """One concrete package. ``external`` is its prefix when the site provides it, else "".

    ``variants`` are booleans, words, or tuples of words for those that take several; ``digest`` is
    the hash that its fields make, which is ``hash`` unless somebody edited them.
    """

    hash: str
    name: str
    version: str
    namespace: str = ""
    variants: Annotated[dict[str, Value], BeforeValidator(_parameters)] = Field(
        default_factory=dict, validation_alias="parameters"
    )
    flags: Annotated[
        dict[str, tuple[str, ...]], BeforeValidator(partial(_parameters, flags=True))
    ] = Field(default_factory=dict, validation_alias="parameters")
    target: Annotated[str, BeforeValidator(_target)] = Field(
        default="", validation_alias=AliasPath("arch", "target")
    )
    os: str = Field(default="", validation_alias=AliasPath("arch", "platform_os"))
    external: Annotated[str, BeforeValidator(_provided)] = ""
    package_hash: str = ""
    digest: str = ""
    dependencies: tuple[Edge, ...] = ()

    def __str__(self) -> str:
        """``name@version/hash`` with seven letters of the hash, as Spack prints it."""
        return f"{self.name}@{self.version}/{self.hash[:7]}"


@part(frozen=True, config=AS_WRITTEN)
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

    def closure(self, starts: Iterable[Node], types: frozenset[str] | None = None) -> list[Node]:
        """``starts`` and all they need, each once; along edges of ``types`` only when given."""

        def below(key: str) -> list[str]:
            edges = self.nodes[key].dependencies
            return [one.hash for one in edges if types is None or one.types & types]

        return [self.nodes[key] for key in reached([one.hash for one in starts], below)]

    def built(self) -> list[Node]:
        """The packages that an installation builds: all that no site provides."""
        return [node for node in self.nodes.values() if not node.external]


class _Spack(BaseModel):
    version: str = ""
    commit: str | None = None


class _Head(BaseModel):
    kind: Any = Field(None, validation_alias=AliasPath("_meta", "file-type"))
    version: Any = Field(None, validation_alias=AliasPath("_meta", "lockfile-version"))


class _File(BaseModel):
    spack: _Spack = _Spack()
    roots: tuple[Root, ...]
    specs: Annotated[dict[str, Node], BeforeValidator(_with_hashes)] = Field(alias="concrete_specs")


def read_lock(path: Path) -> Lock:
    """Read the lock file ``path``.

    Raises InvalidInput, naming the file and what is wrong, when it cannot be read or is no lock
    file of the version that Spack 1.1 writes.
    """
    where, todo = relative(path), "check its name, and that it is a file that you may read"
    with telling(InvalidInput, "cannot be read", where=where, todo=todo):
        return parse_lock(path.read_bytes(), where)


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
    spack = " ".join(filter(None, [raw.spack.version, raw.spack.commit]))
    lock = Lock(file, spack, raw.roots, raw.specs)
    _complete(lock)
    return lock


def _complete(lock: Lock) -> None:
    """Raise for hashes that the file names and does not hold, and for dependencies in a circle."""
    for root in lock.roots:
        if root.hash not in lock.nodes:
            raise _wrong(lock.file, f"the root {root.spec} is not among concrete_specs")
    for node in lock.nodes.values():
        if not node.target:
            raise _wrong(lock.file, f"{node} has no arch.target")
        for edge in node.dependencies:
            if edge.hash not in lock.nodes or lock.nodes[edge.hash].name != edge.name:
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
