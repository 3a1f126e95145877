"""One easyconfig of a package, by hand, serves every MPI of the stack and every Linux."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan import easyconfigs
from mvstack.plan.easyconfigs import names_over, source_of, text_over, versions_of
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, Plan
from mvstack.render.partition import package_easyconfigs, render
from mvstack.support.errors import Refused
from mvstack.support.home import DATA

NAME = "X-1.0-mvfoss-2026.11-ofi-fb.eb"
TEXT = """\
name = 'X'
toolchain = {'name': 'mvfoss', 'version': '2026.11-ofi'}
dependencies = [('HDF5', '1.14.5', '', ('gmvapich', '2026.11-ofi'))]
"""


def place(folder: Path, *names: str) -> dict[str, Path]:
    for name in names:
        (folder / name).write_text(TEXT)
    return {name: folder / name for name in names}


@pytest.mark.parametrize("over", ["mvfoss-2026.11-ucx", "mpfoss-2026.11-ofi", "mpfoss-2026.11-ucx"])
def test_over_another_mpi_the_toolchain_is_another_and_nothing_else(
    tmp_path: Path, over: str
) -> None:
    files = place(tmp_path, NAME)
    name = f"X-1.0-{over}-fb.eb"
    source = source_of(name, files)
    assert source == files[NAME]
    chain, version = over.split("-", 1)
    small = {"mvfoss": "gmvapich", "mpfoss": "gmpich"}[chain]
    assert text_over(name, source).splitlines() == [
        "name = 'X'",
        f"toolchain = {{'name': '{chain}', 'version': '{version}'}}",
        f"dependencies = [('HDF5', '1.14.5', '', ('{small}', '{version}'))]",
    ]


def test_mvapich2_has_a_toolchain_of_gcc_and_mpi(tmp_path: Path) -> None:
    files = place(tmp_path, "Y-1-gmvapich-2026.11-ofi.eb")
    name = "Y-1-gmvapich2-2026.11-mrail.eb"
    source = source_of(name, files)
    assert source and "('gmvapich2', '2026.11-mrail')" in text_over(name, source)


def test_what_is_written_by_hand_over_an_mpi_goes_first(tmp_path: Path) -> None:
    own, over_mpich = "X-1.0-mpfoss-2026.11-ucx-fb.eb", "X-1.0-mpfoss-2026.11-ofi-fb.eb"
    files = place(tmp_path, NAME, over_mpich)
    assert source_of(own, files) == files[over_mpich]
    files |= place(tmp_path, own)
    assert source_of(own, files) == files[own]
    assert text_over(own, files[own]) == TEXT


def test_what_is_for_mpich_alone_is_not_there_over_mvapich(tmp_path: Path) -> None:
    files = place(tmp_path, "Y-1-gmpich-2026.11-ofi.eb")
    assert source_of("Y-1-gmpich-2026.11-ucx.eb", files)
    assert source_of("Y-1-gmvapich-2026.11-ucx.eb", files) is None


@pytest.mark.parametrize(
    "name", ["gmvapich-2026.12-ucx.eb", "MVAPICH-4.9-GCC-12.2.0-ucx.eb", "X-1.0-foss-2022b.eb"]
)
def test_an_easyconfig_that_is_nowhere_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="there is no easyconfig"):
        easyconfigs.find(name, "here")


def test_every_package_of_the_repository_is_there_over_each_mpi() -> None:
    over = {
        chain: names_over([f"{chain}-2026.11-ucx"])
        for chain in ("gmvapich", "mvfoss", "gmpich", "mpfoss")
    }
    assert all(over.values())
    for name in [one for names in over.values() for one in names]:
        text = text_over(name, easyconfigs.find(name, "here"))
        assert "2026.11-ofi" not in text and "2026.11-ucx" in text
        assert ("gmvapich" in text or "mvfoss" in text) == ("-gmv" in name or "-mvf" in name)


def test_no_copy_of_an_easyconfig_is_committed() -> None:
    found = [
        (name, other.name)
        for name in easyconfigs.index()
        for other in [source_of(name, {k: v for k, v in easyconfigs.index().items() if k != name})]
        if other and text_over(name, other) == easyconfigs.index()[name].read_text()
    ]
    assert found == []


# --- the compiler and the libraries of another distribution ---------------------------------------

SYSTEM = """
name: mine
title: t
builder: easybuild
os: debian13
partitions:
  node:
    cores: 2
    memory_gb: 4
    target: x86_64_v3
    fabric: shm
    launcher: hydra
    compiler: {{name: gcc, version: {gcc}, origin: {origin}}}
    externals:
      openblas: {{version: {openblas}, prefix: /usr}}
      fftw: {{version: {fftw}, prefix: /usr}}
source: a test
"""
BY_HAND = sorted(name for name in easyconfigs.index() if re.search(r"(^|-)GCC(core)?-", name))
VERSION = st.builds("{}.{}.{}".format, st.integers(9, 16), st.integers(0, 9), st.integers(0, 9))


def plan(gcc: str, origin: str = "system", openblas: str = "0.3.29", fftw: str = "3.3.10") -> Plan:
    said = SYSTEM.format(gcc=gcc, origin=origin, openblas=openblas, fftw=fftw)
    system = parse_system(said, Path("mine.yaml"))
    return make_plan(system, "node", load_release(), load_policy(), Given(profile="full"))


@given(st.sampled_from(BY_HAND), VERSION, st.builds("0.3.{}".format, st.integers(0, 99)))
def test_over_another_gcc_the_text_says_that_gcc_alone(name: str, gcc: str, openblas: str) -> None:
    there = {"GCC": gcc, "GCCcore": gcc, "OpenBLAS": openblas}
    own = name.replace("12.2.0", gcc).replace("OpenBLAS-0.3.21", f"OpenBLAS-{openblas}")
    source = easyconfigs.index()[name]
    assert source_of(own, easyconfigs.index()) == source
    text = text_over(own, source, there)
    values = {
        node.targets[0].id: node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert ast.literal_eval(values["name"]) == own.split("-")[0]
    assert own.startswith("-".join(ast.literal_eval(values[one]) for one in ("name", "version")))
    if isinstance(values["toolchain"], ast.Dict):
        assert ast.literal_eval(values["toolchain"])["version"] == gcc
    if gcc != "12.2.0":
        assert "12.2.0" not in text
    # and nothing else: written back it is what it was
    back = {"GCC": "12.2.0", "GCCcore": "12.2.0", "OpenBLAS": "0.3.21"}
    assert easyconfigs._OVER_MPI.text_over(text, own, name, back) == source.read_text()


@pytest.mark.parametrize("gcc", ["8.5.0", "4.8.5", "17.1.0"])
def test_a_gcc_for_which_there_is_no_way_is_refused_with_what_to_do(gcc: str) -> None:
    with pytest.raises(Refused) as caught:
        render(plan(gcc))
    problem = caught.value.problems[0]
    assert f"MVAPICH-4.0-GCC-{gcc}-" in problem.message and "GCC 9 to 16" in problem.because
    assert f"gcc {gcc} is none that one is made for" in problem.message
    assert "put such a gcc first on PATH" in problem.todo


def test_a_compiler_of_easybuilds_own_is_of_one_generation() -> None:
    with pytest.raises(Refused, match=r"no generation of EasyBuild's toolchains has gcc 14\.2"):
        render(plan("14.2.0", origin="easybuild"))
    assert render(plan("12.2.0", origin="easybuild"))
    made = plan("14.3.0", origin="easybuild")
    assert made.beneath["CMake"].startswith("3.31") and "MVAPICH-4.0-GCC-14.3.0" in str(
        render(made)
    )


def test_what_is_needed_is_of_the_generation_and_no_longer_bare() -> None:
    versions = {"GCC": "14.3.0", "CMake": "3.31.8", "Python": "3.13.5"}
    text = "[('CMake', '3.24.3'), ('Python', '3.10.8', '-bare'), ('HDF5', '1.14.5', '', local)]"
    assert easyconfigs._OVER_MPI.at(text, versions) == (
        "[('CMake', '3.31.8'), ('Python', '3.13.5', ''), ('HDF5', '1.14.5', '', local)]"
    )
    assert easyconfigs._OVER_MPI.at(text, {"GCC": "14.2.0"}) == text


def test_a_plan_on_another_distribution_is_of_its_compiler_and_libraries() -> None:
    made = plan("14.2.0", openblas="0.3.29", fftw="3.3.8")
    libraries = {one.name: one for one in made.packages if one.name in easyconfigs.LIBRARIES}
    assert libraries["OpenBLAS"].easyconfig == "OpenBLAS-0.3.29-GCC-14.2.0.eb"
    assert (libraries["FFTW"].version, libraries["FFTW"].module) == ("3.3.8", "fftw/3.3.8")
    files = {**package_easyconfigs(made), **render(made)}
    wanted = ["GCC-14.2.0.eb", "GCCcore-14.2.0.eb", *(one.easyconfig for one in made.packages)]
    by_hand = easyconfigs.index()
    assert [one for one in wanted if f"easyconfigs/{one}" not in files and one not in by_hand] == []
    for name, text in files.items():
        if name.endswith(".eb"):  # below the first line, which says what it is made from
            assert "12.2.0" not in text.partition("\n")[2], name
    assert "('OpenBLAS', '0.3.29')" in files["easyconfigs/FlexiBLAS-3.2.1-GCC-14.2.0.eb"]
    (mpi,) = [one.easyconfig for one in made.packages if one.name == "FFTW.MPI"]
    assert "('FFTW', '3.3.8')" in files[f"easyconfigs/{mpi}"]
    chains = [text for name, text in files.items() if "/mvfoss-" in name]
    assert chains and all("('FFTW', '3.3.8', '', ('GCC', '14.2.0'))" in one for one in chains)


def test_on_the_distribution_of_the_hand_written_ones_nothing_is_derived() -> None:
    made = plan("12.2.0", openblas="0.3.21")
    assert not [name for name in package_easyconfigs(made) if "-GCC-" in name]
    other = plan("12.2.0", openblas="0.3.26")
    found = [name for name in package_easyconfigs(other) if "-GCC-" in name]
    assert sorted(found) == [
        "easyconfigs/FlexiBLAS-3.2.1-GCC-12.2.0.eb",
        "easyconfigs/OpenBLAS-0.3.26-GCC-12.2.0.eb",
    ]
    assert versions_of(replace(other, packages=[])) == {"GCC": "12.2.0", "GCCcore": "12.2.0"}


@pytest.mark.parametrize("gcc", ["12.2.0", "14.3.0"])
def test_a_patch_that_is_called_after_a_gcc_keeps_its_name(gcc: str, tmp_path: Path) -> None:
    name = "Zeta-1.0-gmvapich-2026.11-ofi.eb"
    source = tmp_path / name
    source.write_text("patches = ['Zeta-1.0_fix-GCC-10.patch']\n")
    text = easyconfigs.text_over(name, source, {"GCC": gcc, "GCCcore": gcc})
    assert "_fix-GCC-10.patch" in text


def test_a_ucx_is_not_refused_where_a_container_forbids_its_cma() -> None:
    """`ucx_info -d` lists what this kernel lets it use: process_vm_readv may be forbidden."""
    text = (DATA / "easyconfigs/system/u/UCX" / "UCX-1.20.0-GCC-12.2.0.eb").read_text()
    assert "lib/ucx/libuct_cma." in text and "Transport: cma" not in text


def test_a_ucx_is_built_over_nothing_that_happens_to_be_there() -> None:
    """Debian 12's libibmad came into what a cache gives to other machines."""
    text = (DATA / "easyconfigs/system/u/UCX" / "UCX-1.20.0-GCC-12.2.0.eb").read_text()
    assert {"mad", "knem", "xpmem", "efa", "verbs"} <= set(re.findall(r"--without-(\w+)", text))
