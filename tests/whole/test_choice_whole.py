"""The invariants of docs/policy.md over the whole space: every machine that can be said."""

from __future__ import annotations

import sys
from pathlib import Path

from mvstack.model.load import load_policy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from choice_space import accepted, machines, violations

HISTORIC = {
    "azure",
    "slingshot-mpich",
    "slingshot-openmpi",
}  # tests/unit/test_historic.py reaches them
STEP = 7


def test_they_hold_for_every_machine() -> None:
    policy = load_policy()
    found = list(violations(policy, machines()))
    assert not found, "\n".join(found[:20])


def test_the_space_is_as_large_as_it_says() -> None:
    assert sum(1 for _ in machines()) > 200_000
    rows = {got.choice.row.id for got in accepted(load_policy(), machines(STEP))}
    assert rows == {row.id for row in load_policy().builds} - {"fallback-mpich"} - HISTORIC
