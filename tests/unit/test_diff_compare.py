"""Two sides held against each other: what is added, removed, changed, and why."""

from __future__ import annotations

import copy
from typing import Any

import lock_files as locks
from hypothesis import given
from hypothesis import strategies as st

from mvstack.diff.compare import compare, partition
from mvstack.diff.parts import Part, Partition
from mvstack.diff.words import as_data, as_text


def mpi(version: str = "4.1", **ingredients: str) -> Part:
    return Part(
        "mvapich ch4:ucx", "mpi", "mvapich", f"{version}-ucx", {"v": version, **ingredients}
    )


def package(name: str = "HPCC", **ingredients: str) -> Part:
    return Part(f"{name} over mvapich ch4:ucx", "package", name, "1.5.0", ingredients)


def side(*parts: Part, builder: str = "spack", **recipes: str) -> Partition:
    return Partition("cluster/cpu", builder, {part.key: part for part in parts}, recipes)


def test_nothing_changes_between_equal_sides() -> None:
    one = {"cluster/cpu": side(mpi(), package())}
    (found,) = compare(one, copy.deepcopy(one))
    assert found.changes == () and not found.mpi
    assert as_text("HEAD", [found]) == "nothing is rebuilt against HEAD: cluster/cpu"
    assert as_data("HEAD", [found])["changes"] is False


def test_added_removed_and_changed_with_the_reason() -> None:
    old = side(mpi(spec="mvapich netmod=ucx"), package("HPCC"), package("IMB"))
    new = side(mpi(spec="mvapich netmod=ofi"), package("HPCC", mpi="h"), package("HPL"))
    found = partition("cluster/cpu", old, new, None)
    assert found.mpi
    assert [(change.what, change.name) for change in found.changes] == [
        ("changed", "mvapich 4.1-ucx"),
        ("changed", "HPCC 1.5.0"),
        ("added", "HPL 1.5.0"),
        ("removed", "IMB 1.5.0"),
    ]
    assert found.of("changed")[0].why == ("spec mvapich netmod=ucx → mvapich netmod=ofi",)
    text = as_text("HEAD", [found])
    assert text.splitlines()[0] == (
        "cluster/cpu (spack, by plans): the MPI is rebuilt; 1 added, 1 removed, 2 changed"
    )
    assert "  + HPL 1.5.0" in text and "  - IMB 1.5.0" in text


def test_long_ingredients_are_named_and_not_printed() -> None:
    found = partition("c/c", side(mpi(recipe="a" * 64)), side(mpi(recipe="b" * 64)), None)
    assert found.changes[0].why == ("recipe",)


def test_a_partition_that_one_side_lacks() -> None:
    new, old = compare({"old/cpu": side(mpi())}, {"new/cpu": side(mpi())})
    assert [change.what for change in new.changes] == ["added"]
    assert [change.what for change in old.changes] == ["removed"]


def test_another_builder_rebuilds_everything() -> None:
    found = partition("c/c", side(mpi(), builder="easybuild"), side(mpi()), None)
    assert found.changes[0].why == ("builder easybuild → spack",)


def test_recipes_that_may_be_used_are_a_note_and_no_change() -> None:
    found = partition("c/c", side(mpi(), hwloc="a", cp2k="a"), side(mpi(), hwloc="b"), None)
    assert found.changes == ()
    assert "cp2k, hwloc" in found.notes[0]


ingredients = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)
parts = st.lists(
    st.builds(
        lambda name, own: Part(name, "package", name, "1", own), st.sampled_from("xyz"), ingredients
    ),
    unique_by=lambda part: part.key,
)


@given(parts, parts)
def test_each_difference_is_told_once_and_the_other_way_round_too(
    old: list[Part], new: list[Part]
) -> None:
    there = partition("c/c", side(*old), side(*new), None)
    back = partition("c/c", side(*new), side(*old), None)
    swap = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(swap[c.what], c.name) for c in there.changes} == {
        (c.what, c.name) for c in back.changes
    }
    assert len({c.name for c in there.changes}) == len(there.changes)
    same = {p.key for p in old if p in new}
    assert not same & {c.name.split()[0] for c in there.changes}


# --- by lock files ------------------------------------------------------------------------------

SIDE = side(mpi(), package())


def by_locks(old: dict[str, Any], new: dict[str, Any]) -> Any:
    return partition("cluster/cpu", SIDE, SIDE, (locks.lock(old), locks.lock(new)))


def renamed(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The lock file after the hash of one package became another, as Spack would write it."""
    text = locks.json.dumps(data)
    old = locks.node(data, name)["hash"]
    return locks.json.loads(text.replace(old, "z" + old[1:]))


def test_equal_lock_files_rebuild_nothing_whatever_the_plans_say() -> None:
    data = locks.raw("good")
    found = partition(
        "c/c", side(mpi(x="1")), side(mpi(x="2")), (locks.lock(data), locks.lock(data))
    )
    assert found.by == "lock files" and found.changes == ()


def test_a_changed_mpi_is_told_with_what_changed_in_it() -> None:
    new = renamed(locks.raw("good"), "mvapich")
    locks.node(new, "mvapich")["parameters"]["pmi"] = "pmix"
    locks.node(new, "mvapich")["package_hash"] = "another"
    found = by_locks(locks.raw("good"), new)
    assert found.mpi
    (change,) = found.changes
    assert change.name == "mvapich 4.1"
    assert change.why[1:] == ("recipe", "variant pmi")


def test_a_package_that_stands_on_something_new_says_on_what() -> None:
    new = renamed(renamed(locks.raw("good"), "openblas"), "hpcc")
    found = by_locks(locks.raw("good"), new)
    assert not found.mpi
    assert [(c.name, c.why[1:]) for c in found.changes] == [
        ("hpcc 1.5.0", ("what it stands on: openblas",)),
        ("openblas 0.3.30", ()),
    ]


def test_externals_are_not_built_and_so_not_rebuilt() -> None:
    assert by_locks(locks.raw("good"), renamed(locks.raw("good"), "hwloc")).changes == ()


def test_packages_that_come_and_go() -> None:
    old = locks.raw("good")
    new = copy.deepcopy(old)
    hash_ = locks.node(new, "openblas")["hash"]
    locks.node(new, "hpcc")["dependencies"] = [
        edge for edge in locks.node(new, "hpcc")["dependencies"] if edge["hash"] != hash_
    ]
    del new["concrete_specs"][hash_]
    assert [(c.what, c.name) for c in by_locks(old, new).changes] == [
        ("removed", "openblas 0.3.30")
    ]
    assert [(c.what, c.name) for c in by_locks(new, old).changes] == [("added", "openblas 0.3.30")]
