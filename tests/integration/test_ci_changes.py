"""Edits of this repository, each with the jobs that a person expects of it (ci-changes.yaml)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from ci_changes import Repository, Row, read_rows

from mvstack.ci.changes import Todo, todo
from mvstack.ci.graph import Graph, read_graphs
from mvstack.ci.words import explained
from mvstack.diff.sides import Side
from mvstack.model.ci_policy import ci_policy
from mvstack.support.errors import InvalidInput

ROWS = read_rows()
# What asks for nothing asks for nothing all at once, too: one copy of the repository does.
TOGETHER = [row for row in ROWS if row.together and not row.pending]
RENDERING = 2
"""So many copies are rendered at a time, while others are looked at."""


class World:
    """The unedited repository's graphs, and what an edit of it asks for."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor, rows: list[Row]) -> None:
        self.repository, self.pool = Repository(folder), pool
        names = {name.partition("/")[0] for row in ROWS for name in row.systems}
        there = self.repository.base / "environments" / "systems"
        side = self.repository.unedited(n for n in names if (there / f"{n}.yaml").is_file())
        self.before = read_graphs(side)
        self.rendered: dict[str, Future[Side]] = {
            row.name: pool.submit(self.repository.edited, [row])
            for row in rows
            if row not in TOGETHER
        }

    def todos(self, *rows: Row) -> list[Todo]:
        """What is to be done after the edits of ``rows``; the caches hold all that was."""
        begun = self.rendered.pop(rows[0].name, None)
        side = begun.result() if begun else self.repository.edited(list(rows))
        return [
            todo(self.before.get(name), new, self._cached(new), ci_policy().validation)
            for name, new in read_graphs(side).items()
        ]

    def _cached(self, graph: Graph) -> set[str]:
        """Contents that a cache has for the distribution of ``graph``: it keeps them apart."""
        same = [one for one in self.before.values() if one.os == graph.os]
        return {node.content for one in same for node in one.nodes.values()}

    @cached_property
    def nothing_together(self) -> bool:
        """Whether all edits that ask for nothing ask for nothing, all at once."""
        return not any(one.touched for one in self.todos(*TOGETHER))


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[World]:
    asked = [
        item.callspec.params["row"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and hasattr(item, "callspec")
    ]
    with ThreadPoolExecutor(RENDERING) as pool:
        yield World(tmp_path_factory.mktemp("changes"), pool, asked)
        pool.shutdown(cancel_futures=True)


def _marked() -> list[Any]:
    return [
        pytest.param(
            row,
            id=row.name,
            marks=[pytest.mark.xfail(strict=True, reason=row.pending)] if row.pending else [],
        )
        for row in ROWS
    ]


@pytest.mark.parametrize("row", _marked())
def test_a_change_asks_for_what_was_expected(world: World, row: Row) -> None:
    if row in TOGETHER and world.nothing_together:
        return
    todos = world.todos(row)
    found = {one.name: _shape(one, row) for one in todos if one.touched}
    assert found == _expected(row, [one.name for one in todos])
    said = explained("before", todos, {})
    for sentence in row.says:
        assert sentence in said


def test_a_release_that_names_what_has_no_easyconfig_says_so(world: World) -> None:
    row = Row(
        "release-without-an-easyconfig",
        "a person bumps the release first",
        [
            {
                "file": "environments/releases/2026.11.yaml",
                "old": "    version: 1.5.0\n",
                "new": "    version: 9.9.9\n",
            }
        ],
        {},
        ["azure-hbv4"],
    )
    with pytest.raises(InvalidInput) as caught:
        world.todos(row)
    said = str(caught.value)
    assert "HPCC" in said and "9.9.9" in said and "KeyError" not in said


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
