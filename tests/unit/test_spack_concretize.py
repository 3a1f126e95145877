"""What runs inside Spack before it solves: a lock for another machine than this one."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import archspec.cpu
import pytest

from mvstack.builders.spack.runner import INSIDE

GCC = SimpleNamespace(versions={"12.5.0": {}, "12.2.0": {"deprecated": True}})
RECIPES = {"gcc": GCC, "mvapich": SimpleNamespace(versions={"4.1": {}})}


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Spack's modules as far as the script asks them: a machine with a zen3 and Debian 12."""
    cpu: Any = ModuleType("spack.vendor.archspec.cpu")
    cpu.TARGETS, cpu.host = archspec.cpu.TARGETS, lambda: archspec.cpu.TARGETS["zen3"]
    platform = SimpleNamespace(default="zen3", default_os="debian12", operating_sys={"debian12": 0})
    detector = type("CompilerPropertyDetector", (), {})
    said: dict[str, Any] = {
        "spack": {},
        "spack.archspec": {"HOST_TARGET_FAMILY": "x86_64"},
        "spack.compilers": {},
        "spack.compilers.libraries": {"CompilerPropertyDetector": detector},
        "spack.config": {},
        "spack.environment": {},
        "spack.operating_systems": {},
        "spack.operating_systems._operating_system": {"OperatingSystem": lambda *it: it},
        "spack.platforms": {"host": lambda: platform},
        "spack.repo": {"PATH": SimpleNamespace(is_virtual="mpi".__eq__, get_pkg_class=RECIPES.get)},
        "spack.solver": {},
        "spack.solver.asp": {},
        "spack.spec": {"Spec": lambda spec, external_path: (spec, external_path)},
        "spack.util": {},
        "spack.util.libc": {"libc_from_current_python_process": lambda: "this machine's"},
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
    return SimpleNamespace(cpu=cpu, platform=platform, detector=detector)


def as_if_there(*required: str, libc: str = "glibc@=2.28") -> None:
    """Run what the script does to Spack, for an environment that requires this."""
    glibc = {"externals": [{"spec": libc, "prefix": "/usr"}]} if libc else {}
    packages = {"all": {"require": list(required)}, "glibc": glibc}
    runpy.run_path(str(INSIDE / "concretize.py"))["as_if_there"](packages)


@pytest.mark.parametrize(
    ("os_name", "target", "host"),
    [
        ("rocky8", "zen2", "x86_64"),
        ("debian12", "neoverse_v2", "aarch64"),
        ("rhel7", "power9le", "ppc64le"),
    ],
)
def test_spack_is_told_of_the_machine_that_it_solves_for(
    spack: SimpleNamespace, os_name: str, target: str, host: str
) -> None:
    as_if_there(f"os={os_name}", f"target={target}")
    assert spack.cpu.host().name == spack.platform.default == host
    assert (spack.platform.default_os, list(spack.platform.operating_sys)) == (os_name, [os_name])
    assert spack.detector().default_libc() == ("glibc@=2.28", "/usr")
    assert sys.modules["spack.archspec"].HOST_TARGET_FAMILY.name == host


def test_here_it_is_left_as_it_is(spack: SimpleNamespace) -> None:
    as_if_there("os=debian12", "target=zen2")
    assert (spack.cpu.host().name, spack.platform.default) == ("zen3", "zen3")
    assert spack.detector().default_libc() == "this machine's"


@pytest.mark.parametrize("os_name", ["debian12", "rocky8"])
def test_a_compiler_that_is_not_built_yet_counts(spack: SimpleNamespace, os_name: str) -> None:
    """Else Spack leaves wrapper, runtime and C library out of all that it is to compile."""
    as_if_there(f"os={os_name}", "target=zen2")
    assert sys.modules["spack.solver.asp"].c_compiler_runs("gcc, to be built by us")


def test_an_operating_system_that_nothing_is_known_of_is_refused(spack: SimpleNamespace) -> None:
    with pytest.raises(SystemExit, match=r"C library of plan9 are not known: .*policy/spack\.yaml"):
        as_if_there("os=plan9", "target=zen2", libc="")
    as_if_there("os=debian12", "target=zen2", libc="")


def asked(*specs: tuple[str, str]) -> SimpleNamespace:
    """A spec as Spack reads it: the package that is asked for, and what it is to stand on."""
    nodes = [
        SimpleNamespace(
            name=name, fullname=name, version=word, versions=SimpleNamespace(concrete=word or None)
        )
        for name, word in specs
    ]
    return SimpleNamespace(traverse=lambda: nodes)


@pytest.mark.usefixtures("spack")
def test_a_deprecated_version_is_refused_at_once_with_what_there_is_instead() -> None:
    """Spack's solver says no to it after minutes, in words that name no other version."""
    refuse = runpy.run_path(str(INSIDE / "concretize.py"))["no_deprecated"]
    with pytest.raises(SystemExit, match=r"recipe of gcc calls version 12\.2\.0 .*: 12\.5\.0$"):
        refuse([asked(("mvapich", "4.1")), asked(("mvapich", ""), ("gcc", "12.2.0"))])
    refuse([asked(("gcc", "12.5.0"), ("mpi", "")), asked(("gcc", "")), asked(("gcc", "99"))])
