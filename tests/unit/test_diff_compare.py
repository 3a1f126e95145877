"""Two sides held against each other: what is added, removed, changed, and why."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import lock_files as locks
import pytest
from hypothesis import given
from hypothesis import strategies as st
from install_tree import plan_in

from mvstack.builders.spack.resolve import locked
from mvstack.diff.compare import Difference, as_data, as_text, compare, partition
from mvstack.plan.graph import Graph, Node
from mvstack.support import hashes

MPI = "mvapich/4.1-ucx"


def mpi(**own: str) -> Node:
    content = hashes.of("mpi", own)
    return Node(MPI, "mpi", "mvapich", "4.1", content, (), "", own, module=MPI)


def package(name: str = "HPCC", **own: str) -> Node:
    return Node(name, "package", name, "1.5.0", hashes.of(name, own), (MPI,), MPI, own)


def side(*nodes: Node, builder: str = "spack", **recipes: str) -> Graph:
    return Graph("c/c", builder, "plan", {node.key: node for node in nodes}, others=recipes)


def test_nothing_changes_between_equal_sides() -> None:
    one = {"cluster/cpu": side(mpi(), package())}
    (found,) = compare(one, copy.deepcopy(one))
    assert found.changes == () and not found.mpi
    assert as_text("HEAD", [found]) == "nothing is rebuilt against HEAD: cluster/cpu"
    assert as_data("HEAD", [found])["changes"] is False


def test_added_removed_and_changed_with_the_reason() -> None:
    old = side(mpi(spec="mvapich netmod=ucx"), package("HPCC"), package("IMB"))
    over_new = replace(package("HPCC"), content="another")
    new = side(mpi(spec="mvapich netmod=ofi"), over_new, package("HPL"))
    found = partition("cluster/cpu", old, new)
    assert found.mpi
    assert [(change.what, change.name, change.why) for change in found.changes] == [
        ("changed", "mvapich 4.1-ucx", ("spec mvapich netmod=ucx → mvapich netmod=ofi",)),
        ("changed", f"HPCC 1.5.0 over {MPI}", ("what it stands on: mvapich",)),
        ("added", f"HPL 1.5.0 over {MPI}", ()),
        ("removed", f"IMB 1.5.0 over {MPI}", ()),
    ]
    text = as_text("HEAD", [found])
    assert text.splitlines()[0] == (
        "cluster/cpu (spack): the MPI is rebuilt; 1 added, 1 removed, 2 changed"
    )
    assert "  + HPL 1.5.0" in text and "  - IMB 1.5.0" in text


def test_long_ingredients_are_named_and_not_printed() -> None:
    found = partition("c/c", side(mpi(recipe="a" * 64)), side(mpi(recipe="b" * 64)))
    assert found.changes[0].why == ("recipe",)


def test_a_partition_that_one_side_lacks() -> None:
    new, old = compare({"old/cpu": side(mpi())}, {"new/cpu": side(mpi())})
    assert [change.what for change in new.changes] == ["added"]
    assert [change.what for change in old.changes] == ["removed"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(side(mpi()), None, "the MPI is removed; 1 removed"), (None, side(mpi()), "is new; 1 added")],
)
def test_an_mpi_that_one_side_lacks_is_not_said_to_be_rebuilt(
    old: Graph | None, new: Graph | None, words: str
) -> None:
    assert words in as_text("HEAD", [partition("c/c", old, new)]).splitlines()[0]


def test_a_tree_that_moves_is_a_note() -> None:
    old, new = replace(side(mpi()), tree="/opt/a"), replace(side(mpi()), tree="/opt/b")
    found = partition("c/c", old, new)
    assert found.changes == () and "moves from /opt/a to /opt/b" in found.notes[0]
    assert partition("c/c", old, old).notes == ()


def test_another_builder_rebuilds_everything() -> None:
    found = partition("c/c", side(mpi(), builder="easybuild"), side(mpi()))
    assert found.changes[0].why == ("builder easybuild → spack",)


def test_recipes_that_may_be_used_are_a_note_and_no_change() -> None:
    found = partition("c/c", side(mpi(), hwloc="a", cp2k="a"), side(mpi(), hwloc="b"))
    assert found.changes == ()
    assert "cp2k, hwloc" in found.notes[0]


ingredients = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)
nodes = st.lists(
    st.builds(lambda name, own: package(name, **own), st.sampled_from("xyz"), ingredients),
    unique_by=lambda node: node.key,
)


@given(nodes, nodes)
def test_each_difference_is_told_once_and_the_other_way_round_too(
    old: list[Node], new: list[Node]
) -> None:
    top = mpi()
    there = partition("c/c", side(top, *old), side(top, *new))
    back = partition("c/c", side(top, *new), side(top, *old))
    swap = {"added": "removed", "removed": "added", "changed": "changed"}
    assert {(swap[c.what], c.name) for c in there.changes} == {
        (c.what, c.name) for c in back.changes
    }
    assert len({c.name for c in there.changes}) == len(there.changes)
    same = {node.label for node in old if node in new}
    assert not same & {c.name for c in there.changes}


# --- by lock files ------------------------------------------------------------------------------


def by_locks(old: dict[str, Any], new: dict[str, Any], tmp_path: Any) -> Difference:
    plan = plan_in(tmp_path, ("builder: easybuild", "builder: spack"))
    sides = [
        Graph("c/c", "spack", "lock file", locked(locks.parse_lock(locks.json.dumps(one)), plan))
        for one in (old, new)
    ]
    return partition("cluster/cpu", *sides)


def renamed(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The lock file after the hash of one package became another, as Spack would write it."""
    text = locks.json.dumps(data)
    old = locks.node(data, name)["hash"]
    return locks.json.loads(text.replace(old, "z" + old[1:]))


def test_equal_lock_files_rebuild_nothing(tmp_path: Any) -> None:
    found = by_locks(locks.raw("good"), locks.raw("good"), tmp_path)
    assert found.changes == ()


def test_a_changed_mpi_is_told_with_what_changed_in_it(tmp_path: Any) -> None:
    new = renamed(locks.raw("good"), "mvapich")
    locks.node(new, "mvapich")["parameters"]["pmi"] = "pmix"
    locks.node(new, "mvapich")["package_hash"] = "another"
    found = by_locks(locks.raw("good"), new, tmp_path)
    assert found.mpi
    (change,) = found.changes
    assert change.name == "mvapich 4.1"
    assert change.why[1:] == ("variant pmi pmi2 → pmix",) and change.why[0].startswith("recipe")


def test_a_package_that_stands_on_something_new_says_on_what(tmp_path: Any) -> None:
    new = renamed(renamed(locks.raw("good"), "openblas"), "hpcc")
    found = by_locks(locks.raw("good"), new, tmp_path)
    assert not found.mpi
    openblas, hpcc = found.changes
    assert hpcc.name == "hpcc 1.5.0" and hpcc.why == ("what it stands on: openblas",)
    assert openblas.name == "openblas 0.3.30" and openblas.why[0].startswith("hash ")


def test_externals_are_not_built_and_so_not_rebuilt(tmp_path: Any) -> None:
    new = renamed(locks.raw("good"), "hwloc")
    assert by_locks(locks.raw("good"), new, tmp_path).changes == ()


def test_packages_that_come_and_go(tmp_path: Any) -> None:
    old = locks.raw("good")
    new = copy.deepcopy(old)
    hash_ = locks.node(new, "openblas")["hash"]
    locks.node(new, "hpcc")["dependencies"] = [
        edge for edge in locks.node(new, "hpcc")["dependencies"] if edge["hash"] != hash_
    ]
    del new["concrete_specs"][hash_]

    def told(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, str]]:
        return [(c.what, c.name) for c in by_locks(one, other, tmp_path).changes]

    assert told(old, new) == [("removed", "openblas 0.3.30")]
    assert told(new, old) == [("added", "openblas 0.3.30")]
