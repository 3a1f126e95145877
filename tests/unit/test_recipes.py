"""The repository's Spack recipes keep the rules, and what is read of them is what they say."""

from __future__ import annotations

import re

from recipes.checks import check_recipes, easyconfig_hashes
from recipes.reading import read_recipes
from recipes.wanted import unmet, wanted

from mvstack.image.components import known_facts
from mvstack.model.load import load_policy
from mvstack.recipes.rows import recipe_of, versions
from mvstack.sources.spec import known_sources

RECIPES = read_recipes()
BY_NAME = {recipe.name: recipe for recipe in RECIPES}


def test_the_recipes_keep_every_rule() -> None:
    assert check_recipes()


def test_no_recipe_takes_a_refused_hash() -> None:
    refused = {digest for row in known_sources().values() for digest in row.refused}
    assert refused
    taken = {version.sha256 for recipe in RECIPES for version in recipe.versions}
    assert not taken & refused


def test_files_that_both_builders_fetch_have_one_hash() -> None:
    hashes = easyconfig_hashes()
    shared = {
        recipe.url_for(version).rpartition("/")[2]: version.sha256
        for recipe in RECIPES
        for version in recipe.versions
        if version.sha256
    }.keys() & hashes.keys()
    # the comparison itself is check_recipes'; that it has something to compare is held here
    assert {"mvapich-4.1.tar.gz", "mvapich2-2.3.7-2.tar.gz"} <= shared
    assert any(name.startswith("osu-micro-benchmarks-7.5") for name in shared)


def test_the_urls_are_those_of_upstream() -> None:
    def urls(name: str) -> dict[str, str]:
        recipe = BY_NAME[name]
        return {version.name: recipe.url_for(version) for version in recipe.versions}

    base = "https://mvapich.cse.ohio-state.edu/download/mvapich"
    assert urls("mvapich")["4.1"] == f"{base}/mv2/mvapich-4.1.tar.gz"
    assert urls("mvapich2")["2.3.7-2"] == f"{base}/mv2/mvapich2-2.3.7-2.tar.gz"
    assert urls("osu-micro-benchmarks")["7.4"] == f"{base}/osu-micro-benchmarks-7.4.tar.gz"
    assert urls("osu-micro-benchmarks")["5.7.1"] == f"{base}/osu-micro-benchmarks-5.7.1.tgz"
    assert urls("mvapich2-x")["2.3"] == f"{base}/spack-mirror/mvapich2x/mvapich2x-2.3.tar.gz"


def test_every_word_that_the_policy_leads_to_is_in_a_recipe() -> None:
    policy = load_policy()
    words = set(wanted(policy))
    # a sample of each kind, so that the check below has these to find
    assert {
        ("mvapich", "netmod=ofi"),
        ("mvapich", "netmod=ucx"),
        ("mvapich", "fabrics=slingshot-11"),
        ("mvapich", "pmi=pmix"),
        ("mvapich", "pmi=cray"),
        ("mvapich", "process_managers=slurm"),
        ("mvapich", "embedded=libfabric"),
        ("mvapich", "+level_zero"),
        ("mvapich2", "fabrics=mrail"),
        ("mvapich-plus", "gpu=mi300a"),
        ("mvapich2-gdr", "process_managers=jsm"),
    } <= words
    assert not unmet(RECIPES, policy)


def test_messages_name_no_variant_that_is_not_there() -> None:
    """`use netmod=ucx` in a message must be a word of this recipe or of one that it names."""
    known = {
        name: values
        for recipe in RECIPES
        for name, values in recipe.variant_values().items()
        if not recipe.builtin
    }
    for recipe in (one for one in RECIPES if not one.builtin):
        own = recipe.variant_values()
        for conflict in recipe.conflicts:
            for name, value in re.findall(r"\buse ([a-z_]+)=([\w.-]+)", conflict.message):
                assert name in own or name in known, (recipe.name, conflict.message)
                if own.get(name):
                    assert value.rstrip(".") in own[name], (recipe.name, conflict.message)


def test_the_package_that_sites_install_reads_the_same_of_our_recipes() -> None:
    """It has no reader of recipes, and takes versions and licences from their text."""
    licences = known_facts([]).licences
    for recipe in RECIPES:
        found = versions(recipe.path.read_text())
        assert set(found) == {one.name for one in recipe.versions}
        assert licences.get(recipe.name, "") == recipe.licence
        assert recipe_of(recipe.name) == (None if recipe.builtin else recipe.path)
