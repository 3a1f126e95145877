"""What stands for Spack while a recipe is read: directives that write down what they are told."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from recipes.model import Conflict, Variant, Version

Said = defaultdict[str, list[Any]]
"""What the directives in the body of one class say, by the names of a recipe's fields."""


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
    """Values of a variant as Spack's helpers make them; each call on it returns it again.

    ``conditional`` maps a value to the condition under which alone it exists.
    """

    def __init__(self, values: Iterable[Any] = (), default: str = "", when: str = "") -> None:
        super().__init__()
        self.default, self.conditional = default, dict[str, str]()
        for one in values:
            if isinstance(one, Words):
                self += one
                self.conditional |= one.conditional
            elif one is not None:
                self.append(str(one))
        self.conditional |= dict.fromkeys(self, when) if when else {}

    def with_default(self, default: str) -> Self:
        """As Spack's."""
        self.default = default
        return self

    def with_error(self, *_: object) -> Self:
        """As Spack's, of which nothing is kept."""
        return self

    with_non_feature_values = with_error


def _disjoint(*sets: Iterable[Any]) -> Words:
    words = Words(one for part in sets for one in part)
    return words if "none" in words else Words([*words, "none"])  # Spack adds the empty set


# Directives of which nothing is checked here.
_NOT_READ = (
    *("maintainers", "extends", "resource", "filter_compiler_wrappers", "tags"),
    *("can_splice", "build_system", "redistribute", "sanity_check_is_file"),
)


class Directives:
    """The directives of Spack as the recipe in ``path`` calls them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.under: list[dict[str, Any]] = [{}]  # what holds for all directives of a block
        self.saying: list[Said] = []  # what each class says whose body is being run

    def names(self) -> dict[str, Any]:
        """What ``from spack.package import *`` brings, as far as class bodies use it."""
        read = (
            *("version", "variant", "conflicts", "requires", "provides", "license", "patch"),
            "depends_on",
        )
        return {
            **{name: self._directive(name) for name in read},
            **dict.fromkeys(_NOT_READ, lambda *_, **__: None),
            **dict.fromkeys(("run_after", "run_before"), lambda *_, **__: lambda method: method),
            "when": self._under,
            "default_args": self._under,
            "conditional": lambda *values, when="": Words(values, when=str(when)),
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
        self.saying.append(Said(list))
        yield self.saying[-1]
        self.saying.pop()

    @contextmanager
    def _under(self, condition: object = "", **options: Any) -> Iterator[None]:
        """``with when(…)`` and ``with default_args(…)``; the first is a decorator as well."""
        self.under.append(self._all({**options, "when": _both(condition, options.get("when"))}))
        yield
        self.under.pop()

    def _all(self, options: dict[str, Any]) -> dict[str, Any]:
        """``options`` of a directive or block, and what those around it add."""
        around = self.under[-1]
        return {**around, **options, "when": _both(around.get("when"), options.get("when"))}

    def _say(self, field: str, *words: object) -> None:
        self.saying[-1][field] += words

    def _directive(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> None:
            getattr(self, f"_{name}")(*arguments, **self._all(options))

        return call

    def _line(self) -> int:
        """The line of the recipe that is being run."""
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame.f_lineno

    def _version(self, name: object, sha256: object = "", **more: Any) -> None:
        url, commit = (str(more.get(key) or "") for key in ("url", "commit"))
        self._say("versions", Version(str(name), str(sha256 or ""), url, self._line(), commit))

    def _variant(
        self, name: str, default: Any = None, description: str = "", values: Any = None, **more: Any
    ) -> None:
        words = Words()
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
        default = str(default).lower() if isinstance(default, bool) else str(default or "")
        told = (_one_line(description), self._line(), more["when"], words.conditional)
        self._say("variants", Variant(name, default, tuple(words), *told))

    def _conflicts(self, spec: str, **more: Any) -> None:
        self._refused("conflicts", spec, **more)

    def _requires(self, *specs: str, **more: Any) -> None:
        self._refused("requires", " or ".join(specs), **more)

    def _refused(self, kind: str, spec: str, *, when: str, msg: str = "", **_: Any) -> None:
        self._say("conflicts", Conflict(kind, spec, when, _one_line(msg), self._line()))

    def _depends_on(self, spec: str, *, when: str, **_: Any) -> None:
        self._say("needs", (spec, when))

    def _provides(self, *specs: str, **_: Any) -> None:
        self._say("provides", *specs)

    def _license(self, name: str, **_: Any) -> None:
        self._say("licence", name)

    def _patch(self, name: str, *, when: str, **_: Any) -> None:
        self._say("patches", (name, when))


def _one_line(text: object) -> str:
    return " ".join(str(text or "").split())


def _both(one: object, other: object) -> str:
    return " ".join(str(part) for part in (one, other) if part)
