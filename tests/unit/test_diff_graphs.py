"""What a comparison calls changed is what an installation would build anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from install_tree import look, plan_in

from mvstack.diff.compare import compare
from mvstack.diff.sides import Side, both
from mvstack.plan import easyconfigs
from mvstack.plan.graph import Graph
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.support.errors import InvalidInput


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository's folder with a copy of our easyconfigs that a test may change."""
    copy = tmp_path_factory.mktemp("diff") / "tree" / "easyconfigs"
    shutil.copytree(easyconfigs.FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(easyconfigs, "FOLDER", copy)
        easyconfigs._index.cache_clear()
        yield copy.parent
    easyconfigs._index.cache_clear()


@pytest.fixture(scope="module")
def unchanged(tree: Path) -> tuple[dict[str, str], dict[str, Graph]]:
    return seen(plan_in(tree.parent), tree)


def seen(plan: Plan, tree: Path) -> tuple[dict[str, str], dict[str, Graph]]:
    """What an installation hashes (name → hash), and what a comparison reads."""
    rendered = tree.parent / "rendered"
    shutil.rmtree(rendered, ignore_errors=True)
    write(render(plan), rendered / plan.system / plan.partition)
    side = Side("a side", tree, rendered)
    return {item.node.name: item.node.content for item in look(plan)}, both(side, side)[0]


# changed in a file: its pattern and what is added; changed in the system's file: texts for others
EDITS: dict[str, tuple[tuple[str, str], ...]] = {
    "nothing": (),
    "a comment": (("MVAPICH-4.0-GCC-*-ucx.eb", "\n# a remark\n"),),
    "the MPI's easyconfig": (("MVAPICH-4.0-GCC-*-ucx.eb", "\nmaxparallel = 3\n"),),
    "a package's easyconfig": (("HPCC-*-gmvapich-*-ofi.eb", "\nmaxparallel = 3\n"),),
    "a comment in an easyblock": (("mvapich.py", "\n# a remark\n"),),
    "an easyblock": (("mvapich.py", "\nNEW = 1\n"),),
}
CHANGES = {
    "the target": ("target: zen4", "target: zen3"),
    "a parameter": ("file_systems: [nfs, ufs]", "file_systems: [ufs]"),
    "the compiler": ("origin: easybuild", "origin: system"),
    "the title": ("\ntitle: ", "\ntitle: Another "),
}


@pytest.mark.parametrize("name", [*EDITS, *CHANGES])
def test_parts_change_with_the_hashes_that_an_installation_asks(
    name: str, tree: Path, unchanged: tuple[dict[str, str], dict[str, Graph]]
) -> None:
    hashes_before, before = unchanged
    with ExitStack() as undone:
        for pattern, text in EDITS.get(name, ()):
            file = next(tree.rglob(pattern))
            undone.callback(file.write_text, file.read_text())
            file.write_text(file.read_text() + text)
        changes = [CHANGES[name]] if name in CHANGES else []
        hashes_after, after = seen(plan_in(tree.parent, *changes), tree)
    built = {
        software
        for software in ("MVAPICH", "HPCC")
        if hashes_before[software] != hashes_after[software]
    }
    (difference,) = compare(before, after)
    told = {change.name.partition(" ")[0].upper() for change in difference.changes}
    assert told & {"MVAPICH", "HPCC"} == built
    assert difference.mpi == ("MVAPICH" in built)
    assert all(change.why for change in difference.of("changed"))


def test_a_plan_of_another_kind_is_refused_by_name(tree: Path, tmp_path: Path) -> None:
    rendered = tmp_path / "rendered"
    folder = rendered / "cluster" / "cpu"
    folder.mkdir(parents=True)
    for content in ("{", "[]", json.dumps({"builder": "spack"}), json.dumps({"builder": None})):
        (folder / "plan.json").write_text(content)
        with pytest.raises(InvalidInput) as error:
            side = Side("HEAD~9", tree, rendered)
            both(side, side)
        assert error.value.problems[0].where == "HEAD~9: cluster/cpu"
