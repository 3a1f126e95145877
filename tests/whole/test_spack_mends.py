"""Our two package repositories beside a builtin that changes: Spack works on.

One recipe that does not load stops Spack for every package, `spack spec zlib` too. So builtin's
classes that ours inherit from are taken away, renamed and emptied.
"""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from spack_here import run, spack_here

from mvstack.plan.spack import own_repositories

RECIPES = own_repositories()["mvapich_stack"]

INSIDE = Path(__file__).with_name("spack_mends_inside.py")
MENDS = RECIPES.with_name("mvapich_stack_mends")
ROWS = YAML(typ="safe").load(MENDS / "mends.yaml")["mends"]
OWN = ["osu-micro-benchmarks"]  # whole, of nothing of builtin's


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    isolated = spack_here(tmp_path_factory.mktemp("mends") / "state")
    done = run(isolated, "python", str(INSIDE), json.dumps({"own": OWN, "mends": ROWS}))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [one for one in ROWS if one not in OWN])
def test_a_mend_loads_whatever_builtins_recipe_has_become(answers, name):
    found = answers["fuzzed"][name]
    assert [one["error"] for one in found.values()] == [""] * 7, found
    for what, one in found.items():
        lost = what in ("gone", "renamed") and name != "mpi"  # the virtual package is never built
        assert bool(one["said"]) is lost, (what, one)


def test_every_mend_has_its_reason_and_none_has_outlived_its_fault(answers):
    assert answers["mends"] == sorted(ROWS)
    assert answers["over"] == []


def test_without_the_mends_three_packages_of_builtin_are_ours(answers):
    assert answers["shadowed"] == ["mvapich", "mvapich-plus", "mvapich2"]


def test_a_change_of_builtins_recipe_changes_the_hash_of_ours(answers):
    for before, after in answers["hashes"].values():
        assert before != after
