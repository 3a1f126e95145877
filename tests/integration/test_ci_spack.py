"""A job's part of Spack's packages, with a small program in place of Spack."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from install_tree import plan_in
from test_spack_install import ALL, BY_SPACK, KEYS, SYSTEM_GCC, Tree, answer

from mvstack.builders.spack import handed
from mvstack.builders.spack import install as by_spack
from mvstack.builders.spack.resolve import pending, read
from mvstack.cache.use import Caches
from mvstack.support.errors import InvalidInput, Refused

MVAPICH, HPCC = KEYS["mvapich"], KEYS["hpcc"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    umask = os.umask(0o022)
    yield Tree(tmp_path, monkeypatch)
    os.umask(umask)


def test_only_what_is_wanted_is_built_and_nothing_can_be_loaded(tree: Tree) -> None:
    assert tree.install(wanted=frozenset([MVAPICH])) == ["mvapich"]
    assert tree.modules() == []
    assert tree.install(wanted=frozenset([MVAPICH])) == []
    assert tree.install(wanted=frozenset([HPCC])) == ["hpcc"]  # what it stands on is there
    assert tree.modules() == []
    assert tree.install() == [] and tree.modules() == ALL


def test_what_it_stands_on_comes_first_when_both_are_wanted(tree: Tree) -> None:
    assert tree.install(wanted=frozenset([HPCC, MVAPICH])) == ["mvapich", "hpcc"]
    assert tree.calls().count("install --use-buildcache") == 2


def test_what_is_needed_and_nobody_has_is_named(tree: Tree) -> None:
    with pytest.raises(Refused, match="nobody handed it over") as caught:
        tree.install(wanted=frozenset([HPCC]))
    (problem,) = caught.value.problems
    assert "mvapich@1/mmmmmmm" in problem.message and "hpcc@1" in problem.because
    assert MVAPICH in problem.found and str(tree.tree) in problem.found
    assert not any(call.startswith("install") for call in tree.calls())


def test_what_a_cache_offers_is_not_built(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def offered(_: Caches, nodes: list[object]) -> set[str]:
        asked.extend(nodes)
        return {MVAPICH}

    monkeypatch.setattr(by_spack, "offered", offered)
    assert tree.install(wanted=frozenset([HPCC]), caches=Caches()) == ["mvapich", "hpcc"]
    assert len(asked) == 2
    log = (tree.tree / "logs" / "spack-install.log").read_text().splitlines()[0]
    assert f"--use-buildcache package:never,dependencies:only /{HPCC}" in log


def test_a_hash_that_the_lock_has_not_is_named(tree: Tree) -> None:
    with pytest.raises(InvalidInput, match="zzz is not part of this plan"):
        tree.install(wanted=frozenset(["zzz", MVAPICH]))
    assert not any(call.startswith("install") for call in tree.calls())


def test_a_lock_that_was_handed_on_is_not_solved_for_again(tree: Tree, tmp_path: Path) -> None:
    tree.install(wanted=frozenset([MVAPICH]))
    handed.hand_on(tree.plan, tmp_path / "lock")
    (tree.tree / "rendered" / "spack" / "spack.lock").unlink()
    tree.calls()
    given = tmp_path / "lock" / "spack.lock"
    assert tree.install(wanted=frozenset([HPCC]), lock=given) == ["hpcc"]
    assert "python concretize.py" not in tree.calls()
    # another answer for the same inputs takes the place of the one that stands there
    other = answer({**KEYS, "hpcc": "n" * 32})
    given.write_text(other)
    assert tree.install(wanted=frozenset(["n" * 32]), lock=given) == ["hpcc"]
    assert "python concretize.py" not in tree.calls()


def test_a_lock_of_other_inputs_is_refused(tree: Tree, tmp_path: Path) -> None:
    folder = tmp_path / "lock"
    folder.mkdir()
    given = folder / "spack.lock"
    given.write_text(answer(KEYS))
    for text in (None, json.dumps({"inputs": "other"})):
        if text:
            (folder / "lock.json").write_text(text)
        with pytest.raises(Refused) as caught:
            tree.install(wanted=frozenset([MVAPICH]), lock=given)
        assert caught.value.problems[0].where == str(given)
    with pytest.raises(Refused):
        tree.install(lock=folder / "none.lock")
    assert tree.calls() == []
    handed.note(tree.plan, folder)
    assert tree.install(wanted=frozenset([MVAPICH]), lock=given) == ["mvapich"]
    assert "python concretize.py" not in tree.calls()


def test_a_lock_serves_trees_everywhere(tmp_path: Path) -> None:
    def inputs(root: str, *changes: tuple[str, str]) -> str:
        return handed.inputs(plan_in(tmp_path / root, BY_SPACK, SYSTEM_GCC, *changes))

    assert inputs("a") == inputs("b") != inputs("a", ("[nfs, ufs]", "[lustre, nfs, ufs]"))


def test_what_only_a_build_needs_is_not_taken_for_what_a_cache_has(tmp_path: Path) -> None:
    data = json.loads(answer(KEYS))
    specs = data["concrete_specs"]
    specs["t" * 32] = {**specs[MVAPICH], "name": "tool", "dependencies": []}
    row = {"name": "tool", "hash": "t" * 32, "parameters": {"deptypes": ["build"]}}
    data["concrete_specs"][MVAPICH]["dependencies"].append(row)
    file = tmp_path / "spack.lock"
    file.write_text(json.dumps(data))
    lock = read(file)
    assert [node.name for node in pending(lock, ())] == ["tool", "mvapich", "hpcc"]
    assert [node.name for node in pending(lock, (), {MVAPICH})] == ["mvapich", "hpcc"]
    assert [node.name for node in pending(lock, {MVAPICH})] == ["hpcc"]
