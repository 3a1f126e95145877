"""A part of a plan: the wanted packages and what they stand on, as one job of many installs it."""

from __future__ import annotations

from collections.abc import Iterable

from mvstack.cache import use
from mvstack.cache.use import Caches
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.words import listed, nearest
from mvstack.tree.nodes import Work


def considered(plan: Plan, todo: list[Work], wanted: frozenset[str]) -> list[Work]:
    """Of ``todo`` what is wanted and what that stands on, in the same order.

    Raises InvalidInput for what is wanted and is no part of the plan.
    """
    names = [item.node.easyconfig for item in todo]
    if unknown := sorted(wanted - set(names)):
        raise InvalidInput(
            *(
                Problem(
                    f"{name} is no part of this plan",
                    f"{plan.system}/{plan.partition}",
                    allowed=listed(names),
                    nearest=nearest(name, names),
                )
                for name in unknown
            ),
            outcome="Nothing was installed.",
        )
    needed = {name for item in todo if item.node.easyconfig in wanted for name in item.needs}
    return [item for item in todo if item.node.easyconfig in wanted | needed]


def all_wanted(
    plan: Plan, to_build: list[Work], wanted: frozenset[str], caches: Caches | None
) -> None:
    """Raise Refused for what would be built and is not wanted: it should have been had."""
    lost = [item for item in to_build if item.node.easyconfig not in wanted]
    if not lost:
        return
    use.clear(plan)
    raise Refused(
        *(
            missing(
                item.node.easyconfig,
                f"{plan.system}/{plan.partition}",
                [one.node.easyconfig for one in to_build if item.node.easyconfig in one.needs],
                f"content {item.content} for {plan.os}",
                [plan.tree, *(one.name for one in (caches.places if caches else ()))],
            )
            for item in lost
        ),
        outcome="Nothing was built.",
    )


def missing(
    name: str, where: str, needed_by: Iterable[str], content: str, places: list[str]
) -> Problem:
    """What to say of ``name``, which was neither to be built here nor to be had elsewhere."""
    return Problem(
        f"{name} is needed and is not to be built here, and nobody handed it over",
        where,
        found=f"looked for {content} in: {', '.join(places)}",
        because=f"needed by {', '.join(needed_by)}",
        todo="see whether the job that builds it ran and ended well, whether its handover folder "
        "was taken, and whether it has expired; or have it built here too, by naming it as wanted",
    )
