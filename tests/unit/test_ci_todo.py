"""What a change asks of a partition whose lock file is known on both sides, or on one."""

from __future__ import annotations

from dataclasses import replace

from ci_world import names, partition

from mvstack.ci.changes import todo
from mvstack.ci.graph import WHOLE, Graph
from mvstack.model.ci_policy import ci_policy
from mvstack.plan.graph import Node

VALIDATE = ci_policy().validation
LOCKED = partition(0, 40)


def _planned(environment: str) -> Graph:
    """The same partition, as it is read where its lock file is not known."""
    whole = Node(WHOLE, "whole", "Spack's environment", "", environment)
    aspects = {**LOCKED.aspects, "environment": environment}
    return replace(LOCKED, by="plan", nodes={WHOLE: whole}, aspects=aspects)


def _contents(graph: Graph) -> set[str]:
    return {node.content for node in graph.nodes.values()}


def test_a_lock_file_that_only_one_side_has_is_no_change_by_itself() -> None:
    assert not todo(_planned("0"), LOCKED, (), VALIDATE).touched
    assert not todo(LOCKED, _planned("0"), (), VALIDATE).touched


def test_against_a_plan_that_changed_what_no_cache_has_is_built() -> None:
    top = names(0, 40)["tops"][0]
    after = partition(0, 40, [top])
    found = todo(_planned("1"), after, _contents(LOCKED), VALIDATE)
    assert [origin.what for origin in found.origins] == ["in no cache"]
    assert set(found.build) == _contents(after) - _contents(LOCKED)
    assert not found.mpi
    assert found.tags == ("smoke",)
    assert not found.lock


def test_an_environment_whose_lock_file_stays_as_it_was_asks_for_nothing() -> None:
    after = replace(LOCKED, aspects={**LOCKED.aspects, "environment": "1"})
    assert not todo(LOCKED, after, (), VALIDATE).touched


def test_another_distribution_makes_another_package_of_each() -> None:
    after = replace(LOCKED, os="rocky9")
    found = todo(LOCKED, after, (), VALIDATE)
    assert set(found.build) == set(after.nodes)
    assert found.mpi
    assert {origin.why for origin in found.origins} == {("os debian12 → rocky9",)}
    assert found.tags == ("smoke", "correct")
