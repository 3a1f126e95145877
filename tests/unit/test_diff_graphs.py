"""What a comparison calls changed is what an installation would build anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
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


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository's folder with a copy of our easyconfigs that a test may change."""
    copy = tmp_path / "tree" / "easyconfigs"
    shutil.copytree(easyconfigs.FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(easyconfigs, "FOLDER", copy)
    easyconfigs._index.cache_clear()
    yield copy.parent
    easyconfigs._index.cache_clear()


def seen(plan: Plan, tree: Path) -> tuple[dict[str, str], dict[str, Graph]]:
    """What an installation hashes (name → hash), and what a comparison reads."""
    rendered = tree.parent / "rendered"
    shutil.rmtree(rendered, ignore_errors=True)
    write(render(plan), rendered / plan.system / plan.partition)
    side = Side("a side", tree, rendered)
    return {item.node.name: item.node.content for item in look(plan)}, both(side, side, None, None)[
        0
    ]


def append(pattern: str, text: str) -> Callable[[Path], None]:
    def edit(tree: Path) -> None:
        file = next(tree.rglob(pattern))
        file.write_text(file.read_text() + text)

    return edit


EDITS: dict[str, tuple[Callable[[Path], None], tuple[tuple[str, str], ...]]] = {
    "nothing": (lambda tree: None, ()),
    "a comment": (append("MVAPICH-4.1-GCC-*-ucx.eb", "\n# a remark\n"), ()),
    "the MPI's easyconfig": (append("MVAPICH-4.1-GCC-*-ucx.eb", "\nmaxparallel = 3\n"), ()),
    "a package's easyconfig": (append("HPCC-*-gmvapich-*-ofi.eb", "\nmaxparallel = 3\n"), ()),
    "a comment in an easyblock": (append("mvapich.py", "\n# a remark\n"), ()),
    "an easyblock": (append("mvapich.py", "\nNEW = 1\n"), ()),
    "the target": (lambda tree: None, (("target: zen4", "target: zen3"),)),
    "a parameter": (lambda tree: None, (("file_systems: [nfs, ufs]", "file_systems: [ufs]"),)),
    "the compiler": (lambda tree: None, (("origin: easybuild", "origin: system"),)),
    "the title": (lambda tree: None, (("title: ", "title: Another "),)),
}


@pytest.mark.parametrize("name", EDITS)
def test_parts_change_with_the_hashes_that_an_installation_asks(
    name: str, tree: Path, tmp_path: Path
) -> None:
    edit, changes = EDITS[name]
    hashes_before, before = seen(plan_in(tmp_path), tree)
    edit(tree)
    hashes_after, after = seen(plan_in(tmp_path, *changes), tree)
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
            both(side, side, None, None)
        assert error.value.problems[0].where == "HEAD~9: cluster/cpu"
