"""Edits of this repository, each with the jobs that a person expects of it (ci-changes.yaml)."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from ci_changes import Repository, Row, read_rows

from mvstack.ci.changes import Todo, todo
from mvstack.ci.graph import Graph, read_graphs
from mvstack.ci.words import explained
from mvstack.model.ci_policy import ci_policy

ROWS = read_rows()
TOGETHER = [row for row in ROWS if row.together and not row.pending]


class World:
    """The unedited repository's graphs, and what an edit of it asks for."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository(folder)
        names = {name.partition("/")[0] for row in ROWS for name in row.systems}
        there = self.repository.base / "environments" / "systems"
        side = self.repository.unedited(n for n in names if (there / f"{n}.yaml").is_file())
        self.before = read_graphs(side)
        self._together: bool | None = None

    def todos(self, *rows: Row) -> list[Todo]:
        """What is to be done after the edits of ``rows``; the caches hold all that was."""
        after = read_graphs(self.repository.edited(list(rows)))
        return [
            todo(self.before.get(name), new, self._cached(new), ci_policy().validation)
            for name, new in after.items()
        ]

    def _cached(self, graph: Graph) -> set[str]:
        """Contents that a cache has for the distribution of ``graph``: it keeps them apart."""
        same = [one for one in self.before.values() if one.os == graph.os]
        return {node.content for one in same for node in one.nodes.values()}

    @property
    def together_nothing(self) -> bool:
        """Whether all edits that ask for nothing ask for nothing, all at once."""
        if self._together is None:
            self._together = not any(one.touched for one in self.todos(*TOGETHER))
        return self._together


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("changes"))


def _marked() -> Iterator[Any]:
    for row in ROWS:
        pending = pytest.mark.xfail(strict=True, reason=f"not yet: {row.pending}")
        yield pytest.param(row, id=row.name, marks=[pending] if row.pending else [])


@pytest.mark.parametrize("row", _marked())
def test_a_change_asks_for_what_was_expected(world: World, row: Row) -> None:
    if row in TOGETHER and world.together_nothing:
        return
    todos = world.todos(row)
    found = {one.name: _shape(one, row) for one in todos if one.touched}
    assert found == _expected(row, [one.name for one in todos])
    said = explained("before", todos, {})
    for sentence in row.says:
        assert sentence in said


def test_the_table_is_one_that_says_something() -> None:
    assert len(ROWS) >= 30
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(row.why and row.edit for row in ROWS)
    # neither all nor nothing
    assert 10 < len([row for row in ROWS if not row.expect]) < len(ROWS) - 10


def _shape(one: Todo, row: Row) -> dict[str, Any]:
    assert one.staged == bool(one.tags), one.name
    asked = {key for entry in row.expect.values() for key in entry}
    return {
        "builds": sorted(one.graph.nodes[key].name for key in one.build),
        "mpi": one.mpi,
        "tags": list(one.tags),
        "image": one.image,
        "lock": one.lock,
        **({"checks": list(one.checks)} if "checks" in asked else {}),
    }


def _expected(row: Row, names: list[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for pattern, entry in row.expect.items():
        matching = [name for name in names if fnmatchcase(name, pattern)]
        assert matching, f"{row.name}: no partition is {pattern}"
        whole = {"builds": [], "mpi": False, "tags": [], "image": False, "lock": False, **entry}
        found |= {name: {**whole, "builds": sorted(whole["builds"])} for name in matching}
    return found
