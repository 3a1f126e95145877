"""What runs inside Spack before it solves: a lock for another architecture than this machine's."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import archspec.cpu
import pytest

from mvstack.builders.spack.runner import INSIDE


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Spack's modules as far as the script asks them: a machine with a zen3."""
    cpu: Any = ModuleType("spack.vendor.archspec.cpu")
    cpu.TARGETS, cpu.host = archspec.cpu.TARGETS, lambda: archspec.cpu.TARGETS["zen3"]
    platform = SimpleNamespace(default="zen3")
    said: dict[str, Any] = {
        "spack": {},
        "spack.config": {},
        "spack.environment": {},
        "spack.platforms": {"host": lambda: platform},
        "spack.vendor": {},
        "spack.vendor.archspec": {"cpu": cpu},
    }
    for name, values in said.items():
        module = ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    return {"cpu": cpu, "platform": platform}


@pytest.mark.parametrize(
    ("required", "host", "default"),
    [
        (["target=neoverse_v2"], "aarch64", "aarch64"),
        (["target=power9le"], "ppc64le", "ppc64le"),
        (["target=zen2"], "zen3", "zen3"),
        (["target=x86_64"], "zen3", "zen3"),
        ([], "zen3", "zen3"),
    ],
)
def test_spack_is_told_of_the_family_that_it_solves_for(
    spack: dict[str, Any], required: list[str], host: str, default: str
) -> None:
    runpy.run_path(str(INSIDE / "concretize.py"))["on_its_family"](required)
    assert spack["cpu"].host().name == host
    assert spack["platform"].default == default
