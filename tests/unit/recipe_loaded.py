"""A recipe's package.py as a module over a stand-in for Spack, for tests of its own methods."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2] / "spack-repo/spack_repo/mvapich_stack"


class Chained:
    """What disjoint_sets and the like give: each call on it returns it again."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


class Base:
    """What every class that Spack brings is here."""

    cuda_arch_values = amdgpu_targets = ()

    def setup_build_environment(self, env: Any) -> None:
        """As Spack's, which does nothing here."""


class Refusal(Exception):
    """InstallError, SkipTest and SpackError."""


class Builtin(types.ModuleType):
    """A module of Spack's packages: every name in it is a class."""

    __path__: list[str] = []  # noqa: RUF012

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = type(name, (Base,), {})
        setattr(self, name, found)
        return found


@contextlib.contextmanager
def _when(*_: Any, **__: Any) -> Iterator[None]:
    yield


def _spacks() -> dict[str, Any]:
    """What `from spack.package import *` brings."""
    directives = (
        *("version", "variant", "conflicts", "depends_on", "requires", "provides", "license"),
        *("patch", "can_splice", "filter_compiler_wrappers", "redistribute"),
    )
    return {
        **dict.fromkeys(directives, lambda *_, **__: None),
        **dict.fromkeys(("run_after", "run_before"), lambda *_, **__: lambda method: method),
        **dict.fromkeys(("any_combination_of", "disjoint_sets"), lambda *_, **__: Chained()),
        **{name: type(name, (Refusal,), {}) for name in ("InstallError", "SkipTest", "SpackError")},
        "when": _when,
        "join_path": os.path.join,
        "Executable": lambda path: pytest.fail(f"called {path}"),
        "PackageBase": Base,
        "EnvironmentModifications": object,
    }


def loaded(path: Path) -> types.ModuleType:
    """The module of the recipe at ``path``."""
    package = types.ModuleType("spack.package")
    package.__dict__.update(_spacks())
    package.__dict__["__all__"] = list(_spacks())
    stand_ins: dict[str, types.ModuleType] = {"spack": Builtin("spack"), "spack.package": package}
    text = path.read_text()
    shared = REPOSITORY / "build_systems"
    for line in text.splitlines():
        if line.startswith("from spack_repo."):
            name = line.split()[1]
            ours = "spack_repo.mvapich_stack.build_systems."
            if name.startswith((f"{ours}mpich", f"{ours}mvapich")):
                stand_ins[name] = loaded(shared / (name.rpartition(".")[2] + ".py"))
            parts = name.split(".")
            for end in range(1, len(parts) + 1):
                one = ".".join(parts[:end])
                stand_ins.setdefault(one, Builtin(one))
    held = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    try:
        spec = importlib.util.spec_from_file_location(f"recipe_{path.parent.name}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name, before in held.items():
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before
    return module
