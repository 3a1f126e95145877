"""A part of a plan: its wanted nodes alone, over what is here or in the caches."""

from __future__ import annotations

from mvstack.builders.base import lost as lost_problem
from mvstack.cache import use
from mvstack.cache.use import Caches
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.words import listed, nearest
from mvstack.tree.nodes import Work


def considered(plan: Plan, todo: list[Work], wanted: frozenset[str]) -> list[Work]:
    """Of ``todo`` what is wanted and what that stands on, in the same order.

    Raises InvalidInput for what is wanted and not in the plan.
    """
    names = [item.node.key for item in todo]
    if unknown := sorted(wanted - set(names)):
        raise InvalidInput(
            *(
                Problem(
                    f"{name} is not part of this plan",
                    f"{plan.system}/{plan.partition}",
                    allowed=listed(names),
                    nearest=nearest(name, names),
                )
                for name in unknown
            ),
            outcome="Nothing was installed.",
        )
    needed = {name for item in todo if item.node.key in wanted for name in item.node.needs}
    return [item for item in todo if item.node.key in wanted | needed]


def all_wanted(
    plan: Plan, to_build: list[Work], wanted: frozenset[str], caches: Caches | None
) -> None:
    """Raise Refused for what would be built and is not wanted: it should have been had."""
    lost = [item.node for item in to_build if item.node.key not in wanted]
    if not lost:
        return
    use.clear(plan)
    places = [plan.tree, *(one.name for one in (caches.places if caches else ()))]
    raise Refused(
        *(
            lost_problem(
                node.key,
                f"{plan.system}/{plan.partition}",
                [one.node.key for one in to_build if node.key in one.node.needs],
                f"content {node.content} for {plan.os}",
                places,
            )
            for node in lost
        ),
        outcome="Nothing was built.",
    )
