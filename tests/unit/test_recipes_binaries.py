"""tests/spack/binaries.yaml says what the recipes of the binary products and benchmarks say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from recipes.reading import read_recipes

from mvstack.model.constraint import parse
from mvstack.model.load import load_policy

TOP = Path(__file__).resolve().parents[2]
SPACK_TESTS = TOP / "tests" / "spack"
sys.path.insert(0, str(SPACK_TESTS))

from cover import Row, read_set  # noqa: E402
from recipe_loaded import loaded  # noqa: E402

SHARED = TOP / "spack-repo/spack_repo/mvapich_stack/build_systems"
RECIPES = {recipe.name: recipe for recipe in read_recipes()}
ROWS, PACKAGES = read_set(SPACK_TESTS / "binaries.yaml")


def test_every_package_has_a_row_and_each_refusal_a_reason() -> None:
    tried = {parse(row.spec).name for row in ROWS}
    assert tried == {
        "mvapich-plus",
        "mvapich2-gdr",
        "mvapich2-x",
        "osu-micro-benchmarks",
        "osu-inam",
    }
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert all(row.why for row in ROWS)
    assert all(bool(row.because) == (row.state == "refused") for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_names_versions_and_values_that_the_recipe_has(row: Row) -> None:
    root = parse(re.sub(r"\btarget=\S+", "", row.spec))
    recipe = RECIPES[root.name]
    assert root.versions[0].lstrip("=") in {version.name for version in recipe.versions}
    known = recipe.variant_values()
    for name, value in root.variants.items():
        values = [str(value).lower()] if isinstance(value, bool) else [value]
        words = values if isinstance(values[0], str) else list(values[0])
        assert name in known, (row.id, name)
        assert not known[name] or set(words) <= known[name], (row.id, name, words)


@pytest.mark.parametrize("row", [row for row in ROWS if row.state == "refused"], ids=lambda r: r.id)
def test_a_refusal_is_a_message_of_the_recipe(row: Row) -> None:
    recipe = RECIPES[parse(re.sub(r"\btarget=\S+", "", row.spec)).name]
    assert any(row.because in conflict.message for conflict in recipe.conflicts), row.because


def test_of_plus_every_confirmed_toolkit_can_be_named() -> None:
    """Each gpu of each version is either confirmed or refused: none is left open."""
    plus = RECIPES["mvapich-plus"]
    for version in plus.versions:
        for gpu in plus.variant_values()["gpu"] - {"none"}:
            rules = [
                one
                for one in plus.conflicts
                if f"@={version.name}" in one.when + one.spec
                and (f"gpu={gpu}" in one.when.split() or f"gpu={gpu}" in one.spec.split())
            ]
            assert len(rules) == 1, (version.name, gpu)
            assert "~unconfirmed" in rules[0].when
            assert rules[0].message.startswith("unconfirmed: ")


def test_only_a_person_can_say_unconfirmed() -> None:
    """Spack's solver must not switch it on to get what was asked for."""
    text = RECIPES["mvapich-plus"].path.read_text()
    declared = re.search(r'variant\(\s*"unconfirmed".*?\n    \)', text, re.DOTALL)
    assert declared and "sticky=True" in declared.group(0)


@pytest.mark.parametrize(("rpm", "staged"), [("mirror", False), ("installer", True)])
def test_plus_has_one_package_hash_before_and_after_its_spec_is_concrete(
    rpm: str, staged: bool
) -> None:
    """Spack hashes what a package stages, and asks just before the spec is concrete."""
    package = loaded(SHARED.parent / "packages" / "mvapich_plus" / "package.py").MvapichPlus()
    for concrete in (False, True):
        package.spec = SimpleNamespace(
            concrete=concrete, variants={"rpm": rpm}, satisfies=f"rpm={rpm}".__eq__
        )
        assert package.has_code is staged


@pytest.mark.parametrize("fortran", [True, False])
def test_a_dependent_gets_the_wrapper_of_each_language(fortran: bool) -> None:
    """The words of builtin's mpich for recipes; the variables are those of our own builds."""
    package = loaded(SHARED / "mpich_based.py").MpichBased()
    package.prefix = SimpleNamespace(bin="/mpi/bin")
    package.spec = SimpleNamespace(satisfies=lambda text: text == "~fortran" and not fortran)
    package.setup_dependent_package(None, None)
    words, said = {"mpicc": "mpicc", "mpicxx": "mpicxx"}, {}
    wrappers = {"MPICC": "mpicc", "MPICXX": "mpicxx"}
    if fortran:
        words |= {"mpifc": "mpif90", "mpif77": "mpif77"}
        wrappers |= {"MPIFC": "mpifort", "MPIF77": "mpif77", "MPIF90": "mpif90"}
    for word, wrapper in words.items():
        assert vars(package.spec).pop(word) == f"/mpi/bin/{wrapper}"
    assert list(vars(package.spec)) == ["satisfies"]
    package.setup_run_environment(SimpleNamespace(set=said.__setitem__))
    assert said == {name: f"/mpi/bin/{wrapper}" for name, wrapper in wrappers.items()}


@pytest.mark.parametrize("name", ["mvapich2_gdr", "mvapich2_x", "mvapich_plus", "mvapich2"])
def test_the_transport_that_the_policy_plans_is_below_the_recipe(name: str) -> None:
    """The lock of lassen broke the gate of transports: nothing brought rdma-core below its GDR."""
    repo = Path(__file__).parents[2] / "spack-repo" / "spack_repo" / "mvapich_stack"
    text = (repo / "packages" / name / "package.py").read_text()
    for base in re.findall(r"mvapich_stack\.build_systems\.(\w+) import", text):
        text += (repo / "build_systems" / f"{base}.py").read_text()
    below = set(re.findall(r'depends_on\(\s*"([a-z0-9-]+)', text))
    rows = [row.use for row in load_policy().builds if row.use.product == name.replace("_", "-")]
    planned = {one.library for use in rows for one in use.transports.values()} - {"none"}
    assert planned and planned <= below
