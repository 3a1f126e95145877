"""What stands for Spack while a recipe is read: directives that write down what they are told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mvstack.recipes.model import Conflict, Variant, Version


@dataclass
class Said:
    """What the directives in the body of one class say."""

    licence: str = ""
    versions: list[Version] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    provides: list[str] = field(default_factory=list)
    patches: list[tuple[str, str]] = field(default_factory=list)


class Outside(type):
    """A module or class that is not of this repository; ``origin`` is its full name.

    It can be imported, inherited and asked for more of its kind; calling it is an error, since
    only Spack knows what it does.
    """

    origin: str

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or "origin" not in vars(cls):
            raise AttributeError(name)
        found = outside(f"{cls.origin}.{name}")
        return _CONSTANTS.get(found.origin.rpartition("build_systems.")[2], found)

    def __call__(cls, *_: Any, **__: Any) -> Any:
        """Refused: what it would give is not known here."""
        raise LookupError(f"{getattr(cls, 'origin', cls.__name__)}() is not known without Spack")


# Constants of Spack's own classes, one value standing for all: enough to read what a loop declares.
_CONSTANTS: dict[str, Any] = {
    "cuda.CudaPackage.cuda_arch_values": ("80",),
    "rocm.ROCmPackage.amdgpu_targets": ("gfx90a",),
}


def outside(origin: str) -> Outside:
    """What stands for the module or class ``origin``."""
    return Outside(origin.rpartition(".")[2], (), {"origin": origin})


class Words(list[str]):
    """Values of a variant as Spack's helpers make them; each call on it returns it again."""

    def __init__(self, values: Iterable[Any], default: str = "") -> None:
        super().__init__()
        self.default, self.conditional = default, dict[str, str]()
        for one in values:
            if isinstance(one, Conditional):
                self += list(one)
                self.conditional |= dict.fromkeys(one, one.when)
            elif one is not None:
                self.append(str(one))

    def with_default(self, default: str) -> Words:
        """As Spack's."""
        self.default = default
        return self

    def with_error(self, *_: object) -> Words:
        """As Spack's, of which nothing is kept."""
        return self

    with_non_feature_values = with_error

    def allow_empty_set(self) -> Words:
        """As Spack's: ``none`` is a value."""
        if "none" not in self:
            self.insert(0, "none")
        return self

    def prohibit_empty_set(self) -> Words:
        """As Spack's: ``none`` is no value."""
        if "none" in self:
            self.remove("none")
        return self


class Conditional(list[str]):
    """``conditional("a", "b", when=…)``: values that exist under a condition."""

    def __init__(self, *values: object, when: str = "") -> None:
        super().__init__(map(str, values))
        self.when = when


def _disjoint(*sets: Iterable[Any]) -> Words:
    words = Words([one for part in sets for one in part])
    return words if "none" in words else Words([*words, "none"])  # Spack adds the empty set


class _Under:
    """``with when(…)`` and ``with default_args(…)``: what holds for the directives inside."""

    def __init__(self, reader: Directives, condition: str = "", **options: Any) -> None:
        self.reader = reader
        self.more = {**options, "when": _both(condition, options.get("when"))}

    def __enter__(self) -> None:
        before = self.reader.options[-1]
        when = _both(before.get("when"), self.more["when"])
        self.reader.options.append({**before, **self.more, "when": when})

    def __exit__(self, *_: object) -> None:
        self.reader.options.pop()

    def __call__(self, method: Any) -> Any:  # the decorator @when
        return method


class Directives:
    """The directives of Spack as the recipe in ``path`` calls them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.options: list[dict[str, Any]] = [{}]
        self.saying: list[Said] = []

    def names(self) -> dict[str, Any]:
        """What ``from spack.package import *`` brings, as far as class bodies use it."""
        own: dict[str, Callable[..., Any]] = {
            "version": self._version,
            "variant": self._variant,
            "conflicts": self._conflicts,
            "requires": self._requires,
            "provides": self._provides,
            "license": self._license,
            "patch": self._patch,
        }
        return {
            **{name: self._kept(directive) for name, directive in own.items()},
            **dict.fromkeys(_NOT_READ, lambda *_, **__: None),
            **dict.fromkeys(("run_after", "run_before"), lambda *_, **__: lambda method: method),
            "when": lambda condition: _Under(self, str(condition)),
            "default_args": lambda **options: _Under(self, **options),
            "conditional": Conditional,
            "any_combination_of": lambda *values: Words(("none", *values), "none"),
            "auto_or_any_combination_of": lambda *values: Words(("auto", *values), "auto"),
            "disjoint_sets": _disjoint,
            "join_path": lambda *parts: "/".join(parts),
            "find_libraries": outside("spack.package.find_libraries"),
            "PackageBase": outside("spack.package.PackageBase"),
        }

    @contextmanager
    def body(self) -> Iterator[Said]:
        """What the directives say while the body of a class runs."""
        said = Said()
        self.saying.append(said)
        try:
            yield said
        finally:
            self.saying.pop()

    def _kept(self, directive: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **options: Any) -> None:
            under = self.options[-1]
            when = _both(under.get("when"), options.get("when"))
            directive(*arguments, **{**under, **options, "when": when})

        return call

    def _line(self) -> int:
        """The line of the recipe that is being run."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame.f_lineno

    def _version(self, name: object, sha256: str = "", **options: Any) -> None:
        self.saying[-1].versions.append(
            Version(
                str(name),
                str(sha256 or ""),
                str(options.get("url") or ""),
                self._line(),
                bool(options.get("deprecated", False)),
                str(options.get("commit") or ""),
            )
        )

    def _variant(
        self, name: str, default: Any = None, description: str = "", values: Any = None, **more: Any
    ) -> None:
        words = Words(())
        if values is bool or (values is None and isinstance(default, (bool, type(None)))):
            words = Words(("true", "false"))
        elif isinstance(values, Words):
            words = values
        elif callable(values) and not isinstance(values, type):  # a check of any word
            raise TypeError("the values of a variant are known to Spack alone")
        elif values is not None and not isinstance(values, type):  # `values=str` takes any word
            words = Words([values] if isinstance(values, str) else values)
        default = words.default if default is None else default
        if isinstance(default, (tuple, list)):
            default = ",".join(map(str, default))
        self.saying[-1].variants.append(
            Variant(
                name,
                str(default).lower() if isinstance(default, bool) else str(default or ""),
                tuple(words),
                _line(description),
                self._line(),
                more["when"],
                words.conditional,
            )
        )

    def _conflicts(self, spec: str, *, msg: str = "", when: str = "", **_: Any) -> None:
        self._refused("conflicts", spec, when, msg)

    def _requires(self, *specs: str, msg: str = "", when: str = "", **_: Any) -> None:
        self._refused("requires", " or ".join(specs), when, msg)

    def _refused(self, kind: str, spec: str, when: str, message: str) -> None:
        one = Conflict(kind, spec, when, _line(message), self._line())
        self.saying[-1].conflicts.append(one)

    def _provides(self, *specs: str, **_: Any) -> None:
        self.saying[-1].provides += specs

    def _license(self, name: str, **_: Any) -> None:
        self.saying[-1].licence = name

    def _patch(self, name: str, *, when: str = "", **_: Any) -> None:
        self.saying[-1].patches.append((name, when))


# Directives of which nothing is checked here.
_NOT_READ = (
    *("depends_on", "maintainers", "extends", "resource", "filter_compiler_wrappers", "tags"),
    *("can_splice", "build_system", "redistribute", "sanity_check_is_file"),
)


def _line(text: str | None) -> str:
    return " ".join(str(text or "").split())


def _both(one: str | None, other: str | None) -> str:
    return " ".join(part for part in (one, other) if part)
