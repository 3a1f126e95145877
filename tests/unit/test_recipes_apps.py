"""The recipes of applications, read without Spack."""

from __future__ import annotations

import ast
import re

import pytest
from recipes.model import Recipe
from recipes.reading import MENDS, RECIPES, read_recipes
from ruamel.yaml import YAML

from mvstack.model.spack import spack_pins

PRODUCTS = MENDS.parent / "build_systems" / "mend.py"
MISSING = {"awp_odc", "mpich_testsuite", "npb_openshmem", "npb_upc", "q_chem"}
RECIPE = {one.folder: one for one in read_recipes()}
# `mpi` is the virtual package and no application.
STAND_INS = [
    one
    for one in RECIPE.values()
    if one.builtin == one.folder.replace("_", "-") and not one.provides and one.folder != "mpi"
]


def _products() -> set[str]:
    [value] = [
        one.value
        for one in ast.parse(PRODUCTS.read_text()).body
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "PRODUCTS"
    ]
    return set(ast.literal_eval(value))


def test_every_mvapich_that_we_package_counts_as_mvapich() -> None:
    packaged = {one.replace("_", "-") for one in RECIPE if one.startswith("mvapich")}
    assert packaged - {"mvapich2-j"} == _products()  # Java's bindings are no MPI


def test_what_builtin_lacks_is_here() -> None:
    assert set(RECIPE) >= MISSING
    assert not any(RECIPE[one].builtin for one in MISSING)


@pytest.mark.parametrize("recipe", STAND_INS, ids=lambda one: str(one.folder))
def test_a_stand_in_mends_and_does_no_more(recipe: Recipe) -> None:
    # versions come from builtin's recipe with their hashes; what it leaves open, a commit proves
    assert all(one.commit for one in recipe.versions)
    assert not recipe.patches
    assert recipe.methods <= {
        "configure_args", "flag_handler", "setup_build_environment", "setup_run_environment",
        "content_hash",
    }  # fmt: skip


@pytest.mark.parametrize("recipe", STAND_INS, ids=lambda one: str(one.folder))
def test_a_stand_in_calls_what_it_overrides(recipe: Recipe) -> None:
    """So that what builtin's does for another MPI stays; flags start from what they are given."""
    tree = ast.parse(recipe.path.read_text())
    for method in ast.walk(tree):
        if isinstance(method, ast.FunctionDef) and method.name != "flag_handler":
            assert f"super().{method.name}(" in ast.unparse(method)
        elif isinstance(method, ast.FunctionDef):
            assert "return (flags, None, None)" in ast.unparse(method)


@pytest.mark.parametrize("folder", sorted(MISSING))
def test_a_source_is_proved_or_downloaded_by_hand(folder: str) -> None:
    recipe = RECIPE[folder]
    proved = [one.sha256 or one.commit for one in recipe.versions]
    assert all(proved) or (recipe.manual and not any(proved))
    assert recipe.manual == (folder in {"npb_upc", "q_chem"})


@pytest.mark.parametrize("folder", ["npb_upc", "q_chem"])
def test_what_is_downloaded_by_hand_says_how(folder: str) -> None:
    text = RECIPE[folder].path.read_text()
    said = text[text.index("def download_instr") :]
    for word in ("page ", "file ", "put it where", "--no-checksum"):
        assert word in said
    assert re.search(r"# (no hash|licensed):", text)


def test_the_test_suite_covers_what_our_mpis_are_made_from() -> None:
    """MPICH 4.3.0: MVAPICH 4; 3.4.3: MVAPICH 3; 3.2.1: MVAPICH2 2.3.7."""
    assert {one.name for one in RECIPE["mpich_testsuite"].versions} >= {"4.3.0", "3.4.3", "3.2.1"}


def test_a_mend_has_its_reason_and_what_upstream_did() -> None:
    """And was looked at for the spack-packages that is pinned: a new pin asks for it again."""
    told = YAML(typ="safe").load(MENDS.parent / "mends.yaml")
    assert told["checked"] == spack_pins().packages.tag
    mended = {one.name for one in RECIPE.values() if one.path.is_relative_to(MENDS)}
    assert set(told["mends"]) == mended
    for row in told["mends"].values():
        assert row["why"]
        assert row["upstream"]
        assert row.get("still") or row.get("without")


def test_the_stack_stands_on_no_recipe_of_builtin() -> None:
    """A recipe of builtin's that changes must not keep ours from loading."""
    for path in RECIPES.parent.rglob("*.py"):
        assert "spack_repo.builtin.packages" not in path.read_text(), path
