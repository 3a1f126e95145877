"""A plan and an installed tree as `mvstack install` leaves it, without building anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mvstack.builders.base import graph_of
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, Plan
from mvstack.support.home import DATA
from mvstack.tree.records import Records, Work, work

SYSTEM = DATA / "environments" / "systems" / "azure-hbv4.yaml"
RELEASE, POLICY = load_release(), load_policy()


def plan_in(root: Path, *changes: tuple[str, str], profile: str = "") -> Plan:
    """The plan of azure-hbv4 below ``root``, with texts of its file replaced."""
    text = SYSTEM.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    system = parse_system(text, SYSTEM)
    given = Given(str(root), profile)
    return make_plan(system, "hpc", RELEASE, POLICY, given)


def look(plan: Plan) -> list[Work]:
    """What is to be done for ``plan``."""
    return work(graph_of(plan), Path(plan.tree))


def states(plan: Plan) -> dict[str, str]:
    """Name of a node → its state."""
    return {item.node.name: item.state.value for item in look(plan)}


def install(plan: Plan, names: Sequence[str] = ()) -> None:
    """Leave modules and records as if ``names`` (all if none) had been built."""
    records = Records(Path(plan.tree))
    for item in look(plan):
        if not names or item.node.name in names:
            records.begin(item.node.key, item.node.content)
            item.module_file.parent.mkdir(parents=True, exist_ok=True)
            item.module_file.write_text("-- a module\n")
            records.built(item.node.key, item.node.content)
