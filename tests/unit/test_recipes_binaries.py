"""tests/spack/binaries.yaml says what the recipes of the binary products and benchmarks say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from recipes.reading import read_recipes

from mvstack.model.constraint import parse

SPACK_TESTS = Path(__file__).parent.parent / "spack"
sys.path.insert(0, str(SPACK_TESTS))

from cover import Row, read_set  # noqa: E402

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
