"""Every easyconfig resolves, is in style, and refuses what its version does not know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from easybuild_here import EASYCONFIGS, RECIPES, eb, needs

from mvstack.builders.easybuild.command import EasyBuild
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.easybuild import build_order
from mvstack.plan.easyconfigs import names_over
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, Plan
from mvstack.render.partition import package_easyconfigs, render, write

MPI = sorted((EASYCONFIGS / "m").glob("M*PICH*/*.eb"))


@pytest.fixture(autouse=True)
def _needs() -> None:
    needs()


def test_all_resolve_from_this_repository_alone(tmp_path: Path) -> None:
    assert RECIPES, f"no easyconfig below {EASYCONFIGS}"
    done = eb(tmp_path, "-D", *RECIPES)
    assert done.returncode == 0, done.stdout[-3000:]
    # the list is wrapped at the width of a terminal
    listed = "".join(done.stdout.split())
    assert [recipe.name for recipe in RECIPES if recipe.name not in listed] == []


def test_all_resolve_over_every_mpi_by_the_hook(tmp_path: Path) -> None:
    """None of these has a file: easyconfigs/hooks.py writes what the plan would."""
    kinds = ("gmvapich", "mvfoss", "gmpich", "mpfoss")
    chains = [path.stem for path in RECIPES if path.stem.startswith(kinds)]
    names = names_over(chains)
    assert len(names) > 100
    done = eb(tmp_path, "-D", *names)
    assert done.returncode == 0, done.stdout[-3000:]
    listed = "".join(done.stdout.split())
    assert [name for name in names if name not in listed] == []


@pytest.mark.parametrize("gcc", ["11.5.0", "14.2.0"])
def test_what_stands_on_the_compiler_resolves_over_that_of_another_linux(
    tmp_path: Path, gcc: str
) -> None:
    """The hook asks gcc and pkg-config; these answer as on a machine of another distribution."""
    answers = {"gcc": f"gcc (Other) {gcc} ", "pkg-config": "0.3.29"}
    for name, text in answers.items():
        (tmp_path / name).write_text(
            f'#!/bin/sh\n[ "$1" = -dumpfullversion ] && exec echo {gcc}\necho "{text}"\n'
        )
        (tmp_path / name).chmod(0o755)
    names = ["HPCC-1.5.0-gmvapich-2026.11-ofi.eb", f"FlexiBLAS-3.2.1-GCC-{gcc}.eb"]
    path = f"{tmp_path}:{Path(sys.prefix) / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    done = eb(tmp_path, "-D", "--filter-deps=CMake,Python", *names, PATH=path)
    assert done.returncode == 0, done.stdout[-3000:]
    listed = "".join(done.stdout.split())
    below = ["GCCcore-{}.eb", "GCC-{}.eb", "OpenBLAS-0.3.29-GCC-{}.eb", "MVAPICH-4.0-GCC-{}-ofi.eb"]
    for name in [*names, *(one.format(gcc) for one in below)]:
        assert name in listed, done.stdout
    assert "12.2.0" not in listed


STOCK = Path(sys.prefix) / "easybuild" / "easyconfigs"
GENERATIONS = load_policy().generations


def of_generation(name: str, transport: str) -> Plan:
    """azure-hbv4 in full, with the compiler of that generation."""
    text = Path("environments/systems/azure-hbv4.yaml").read_text()
    old, new = "version: 12.2.0, origin: easybuild}", f"version: {GENERATIONS[name].gcc}"
    more = f"\n    mpi: {{transport: {transport}}}"
    changed = text.replace(old, f"{new}, origin: easybuild}}{more}")
    system = parse_system(changed, Path("changed.yaml"))
    return make_plan(system, "hpc", load_release(), load_policy(), Given(profile="full"))


@pytest.mark.parametrize("name", GENERATIONS)
def test_a_generation_has_the_versions_of_stock_easyconfigs(name: str) -> None:
    generation = GENERATIONS[name]
    stock = {path.name for path in STOCK.rglob("*.eb")}
    for software, version in generation.versions.items():
        over = (f"GCCcore-{generation.gcc}", f"GCC-{generation.gcc}", f"gfbf-{name}")
        known = [f"{software}-{version}.eb", *(f"{software}-{version}-{one}.eb" for one in over)]
        assert stock & set(known), (software, version)


@pytest.mark.parametrize(
    ("name", "transport"),
    [("2022b", "built"), ("2025b", "system"), ("2026.1", "built")],
)
def test_a_generation_resolves_in_full(tmp_path: Path, name: str, transport: str) -> None:
    plan, generation = of_generation(name, transport), GENERATIONS[name]
    rendered = tmp_path / "rendered"
    write({**package_easyconfigs(plan), **render(plan)}, rendered)
    names = [node.key for node in build_order(plan)]
    assert len(names) > 30
    ours = EasyBuild(tmp_path, tmp_path / "tree", rendered, system_compiler=False)
    command = ours.command(names[-1], "-D", *names[:-1])
    done = subprocess.run(command, env=ours.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    listed = "".join(done.stdout.split())
    assert [one for one in names if one not in listed] == []
    # nothing beneath is of the generation by hand, nor wraps what the distribution has
    assert "easyconfigs/system/" not in listed
    assert ("12.2.0" in listed) == (name == "2022b")
    ucx = f"UCX-{generation.versions['UCX']}-GCCcore-{generation.gcc}.eb"
    assert (ucx in listed) == (transport == "built")


def test_all_pass_the_checks_of_a_contribution(tmp_path: Path) -> None:
    """Style, and a SHA-256 for every source and patch."""
    done = eb(tmp_path, "--check-contrib", *RECIPES)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count("[PASS]") == 2 * len(RECIPES)
    assert "unknown easyconfig parameters" not in done.stdout, done.stdout[:3000]
    for checked in ("SHA256 checksums", "contribution"):
        assert f"All {checked} checks PASSed" in done.stdout, done.stdout[-3000:]


@pytest.mark.parametrize(
    ("start", "line", "words"),
    [
        ("MVAPICH-4.0", "device = 'ch4:ofy'", ["device", "ch4:ofy", "ch4:ofi"]),
        ("MVAPICH-4.0", "launcher = 'mpirun_rsh'", ["launcher", "mpirun_rsh", "hydra"]),
        ("MVAPICH-4.0", "file_systems = ['ufs', 'luster']", ["file_systems", "luster", "lustre"]),
        ("MVAPICH-4.1", "pmi = 'pmi3'", ["pmi", "pmi3", "pmi2"]),
        ("MVAPICH-3.0", "gpu = 'rocm'", ["gpu", "rocm", "cuda"]),
        ("MVAPICH2-2.3.7", "device = 'ch4:ofi'", ["device", "ch4:ofi", "ch3:mrail"]),
        ("MPICH-4.0.2", "optimisation = 'O9'", ["optimisation", "O9", "O2"]),
    ],
)
def test_a_wrong_word_is_named_with_what_is_allowed(
    tmp_path: Path, start: str, line: str, words: list[str]
) -> None:
    base = next(recipe for recipe in MPI if recipe.name.startswith(start))
    wrong = tmp_path / base.name
    wrong.write_text(f"{base.read_text()}\n{line}\n")
    done = eb(tmp_path / "root", "--module-only", "--force", wrong)
    assert done.returncode != 0
    for word in words:
        assert word in done.stdout, done.stdout[-3000:]
    assert not list((tmp_path / "root").rglob("*pich*.lua"))
