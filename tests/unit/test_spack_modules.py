"""The text of modules that Spack's packages get: what a user sees must not tell the builder."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from install_tree import plan_in

from mvstack.builders.spack.clone import Clones
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.modules import Part, content_of, module_text, parts_of
from mvstack.plan.types import Plan

PREFIX = "/tree/software/mvapich-4.0-abcdefg"
FOUND: dict[str, Any] = {
    "prefix": PREFIX,
    "homepage": "https://mvapich.cse.ohio-state.edu/",
    "changes": [
        ["prepend_path", "PATH", f"{PREFIX}/bin", ":"],
        ["setenv", "MPICC", "/elsewhere/mpicc", ":"],
        ["prepend_path", "ODD", "a", ";"],
        ["unsetenv", "SHADOW", "", ":"],
    ],
    "transport": ["/opt/ucx/lib", "/usr/lib/x86_64-linux-gnu"],
}
LOADER = frozenset({"/usr/lib", "/usr/lib/x86_64-linux-gnu"})


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_in(tmp_path, ("builder: easybuild", "builder: spack"), ("easybuild}", "system}"))


def mpi(plan: Plan) -> Part:
    """The part of the plan's MPI."""
    return next(part for part in parts_of(plan) if part.build)


def test_places_are_easybuilds(plan: Plan) -> None:
    assert [(part.key, part.file, part.over) for part in parts_of(plan)][:3] == [
        ("gcc/12.2.0", "Core/gcc/12.2.0.lua", ""),
        ("mvapich/4.0-ucx", "Compiler/gcc/12.2.0/mvapich/4.0-ucx.lua", ""),
        (
            "mvapich/4.0-ucx hpcc/1.5.0",
            "MPI/gcc/12.2.0/mvapich/4.0-ucx/hpcc/1.5.0.lua",
            "mvapich/4.0-ucx",
        ),
    ]


def test_a_package_that_spack_does_not_have_gets_no_module(plan: Plan) -> None:
    packages = [replace(one, spack="") for one in plan.packages]
    assert not any(part.package for part in parts_of(replace(plan, packages=packages)))


def test_what_the_plan_says_goes_over_what_spack_says(plan: Plan) -> None:
    text = module_text(plan, mpi(plan), FOUND, LOADER)
    assert re.findall(r'setenv\("MPICC", "(.*)"\)', text) == [f"{PREFIX}/bin/mpicc"]
    assert 'prepend_path("ODD", "a", ";")' in text and 'unsetenv("SHADOW")' in text
    for name, setting in plan.mpi[0].environment.items():
        assert f'setenv("{name}", "{setting["value"]}")' in text


def test_the_transport_is_found_where_the_loader_would_not_look(plan: Plan) -> None:
    text = module_text(plan, mpi(plan), FOUND, LOADER)
    assert 'prepend_path("LD_LIBRARY_PATH", "/opt/ucx/lib")' in text
    assert "x86_64-linux-gnu" not in text
    # prepended before the MPI's own folders, so that it comes behind them
    assert text.index("/opt/ucx/lib") < text.index(f"{PREFIX}/bin")


def test_help_says_whose_bytes_these_are(plan: Plan) -> None:
    assert "not upstream's" not in module_text(plan, mpi(plan), FOUND, LOADER)
    build = replace(plan.mpi[0], not_upstream="made here", accepted_sha256=["a" * 64])
    plan = replace(plan, mpi=[build])
    text = module_text(plan, mpi(plan), FOUND, LOADER)
    assert "not upstream's bytes: made here" in text and "a" * 64 in text
    for one in parts_of(plan):
        if one.package:
            other = replace(one.package, not_upstream="made here", accepted_sha256=["b" * 64])
            said = module_text(plan, replace(one, package=other), FOUND, LOADER)
            assert f"not upstream's bytes: made here (sha256 {'b' * 64})" in said


def test_a_compiler_elsewhere_is_put_on_the_path(plan: Plan) -> None:
    compiler = parts_of(plan)[0]
    assert "PATH" not in module_text(plan, compiler, {}, LOADER).replace("MODULEPATH", "")
    other = {**plan.compiler, "origin": "external", "prefix": "/opt/gcc-12"}
    text = module_text(replace(plan, compiler=other), compiler, {}, LOADER)
    assert 'prepend_path("PATH", "/opt/gcc-12/bin")' in text
    assert 'prepend_path("LD_LIBRARY_PATH", "/opt/gcc-12/lib64")' in text


def test_all_that_decides_a_module_decides_its_hash(plan: Plan) -> None:
    part = mpi(plan)
    first = content_of(plan, part, "hash", "inputs")
    assert content_of(plan, mpi(plan), "hash", "inputs") == first
    assert content_of(plan, part, "other", "inputs") != first
    assert content_of(plan, part, "hash", "other") != first
    assert content_of(replace(plan, tree="/other"), part, "hash", "inputs") != first


# --- the configuration that Spack runs with -------------------------------------------------------


def isolated(folder: Path) -> Isolated:
    """One tree's Spack, without any Spack."""
    home = folder / "spack" / "v1"
    return Isolated(
        Clones(home, home / "spack", home / "packages"),
        home / "python" / "bin" / "python",
        state=folder / "tree" / "spack",
        store=folder / "tree" / "software",
        root=folder,
        repos={"mvapich_stack_accepted": folder / "overlay"},
        mirrors={"cache": {"url": "file:///cache", "binary": True, "signed": True}},
    )


def test_nothing_of_the_callers_settings_comes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPACK_ENV", "SPACK_DISABLE_LOCAL_CONFIG", "PYTHONPATH", "LOADEDMODULES"):
        monkeypatch.setenv(name, "mine")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    found = isolated(tmp_path).environment()
    assert "mine" not in found.values() and found["https_proxy"] == "http://proxy:3128"
    assert found["SPACK_USER_CONFIG_PATH"] == str(tmp_path / "tree" / "spack" / "config")
    assert "SPACK_DISABLE_LOCAL_CONFIG" not in found


def test_repositories_stand_in_their_order(tmp_path: Path) -> None:
    files = isolated(tmp_path).files()
    assert list(files["repos.yaml"]["repos:"]) == [
        "mvapich_stack_accepted",
        "mvapich_stack_mends",
        "mvapich_stack",
        "builtin",
    ]
    assert list(files["mirrors.yaml"]["mirrors:"]) == ["cache", "mvapich-stack-sources"]
    assert files["bootstrap.yaml"]["bootstrap"]["sources"] == []


def test_spack_keeps_no_answers(tmp_path: Path) -> None:
    """A kept one has the hash of a recipe as it was, and gave a root the package of another."""
    concretizer = isolated(tmp_path).files()["concretizer.yaml"]["concretizer"]
    assert concretizer["concretization_cache"] == {"enable": False}
