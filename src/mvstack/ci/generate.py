"""``mvstack ci generate``: from a change to the pipelines that carry it out, explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mvstack.builders.base import builder_of
from mvstack.cache.gpg import BadSignature
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.ci import lock
from mvstack.ci.changes import Beyond, Todo, todo
from mvstack.ci.deployed import deployed_state
from mvstack.ci.graph import WHOLE, Graph, Node, read_graphs
from mvstack.ci.handover import keyring
from mvstack.ci.pipeline import Context, Pipelines, Target, pipelines, scheduled
from mvstack.ci.sites import both_sides
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.words import listed


@dataclass(frozen=True)
class Wanted:
    """What pipelines are wanted for: the change since ``base``, or a ``schedule``.

    With ``everything`` all partitions are made, whatever changed. ``locks`` is a folder of Spack's
    lock files, instead of that of the settings.
    """

    base: str = ""
    schedule: str = ""
    everything: bool = False
    locks: Path | None = None


@dataclass(frozen=True)
class Made:
    """What a pipeline's first job has to tell and to write."""

    against: str
    todos: list[Todo]
    pipelines: Pipelines
    unserved: list[str]
    notes: list[str]


def generate(project: Path, file: Path, context: Context, wanted: Wanted) -> Made:
    """The pipelines of ``project`` whose settings file is ``file``, named from the project.

    Raises InvalidInput, Refused.
    """
    settings = context.settings
    locks = wanted.locks or (project / settings.locks if settings.locks else None)
    base = "" if wanted.schedule else wanted.base
    with (
        both_sides(project, file, context, base) as (before, now),
        TemporaryDirectory(prefix="mvstack-") as folder,
    ):
        notes: list[str] = []
        old = read_graphs(before) if before else {}
        plans = lock.spack_plans(now)
        locked = lock.usable(locks, plans, notes)
        new = read_graphs(now, lock.copied(locked, Path(folder)))
        served = _served(settings, new)
        plans = {name: plan for name, plan in plans.items() if name in served}
        if wanted.schedule:
            targets = [
                Target(Todo(new[name]), *named, lock=locked.get(name))
                for name, named in served.items()
            ]
            return _scheduled(wanted.schedule, targets, context)
        lock.refuse_own_compilers(plans)
        with keyring(trust=[project / one for one in settings.trust]):
            graphs = {name: new[name] for name in served}
            found = contents_in(settings, graphs, plans, notes)
        todos = [
            todo(
                old.get(name),
                graph,
                found.get(name, set()),
                ci_policy().validation,
                Beyond(
                    wanted.everything,
                    context.trusted and bool(settings.push) and name in served,
                    deployed_state(settings, *served[name]) if name in served else None,
                ),
            )
            for name, graph in new.items()
        ]
        targets = [
            Target(one, *served[one.name], lock=locked.get(one.name))
            for one in todos
            if one.name in served
        ]
        made = pipelines(targets, context)
    unserved = [one.name for one in todos if one.touched and one.name not in served]
    against = before.name if before else "nothing: everything is new"
    return Made(against, todos, made, unserved, notes)


def _scheduled(schedule: str, targets: list[Target], context: Context) -> Made:
    validation = ci_policy().validation
    tags = {"nightly": validation.nightly, "weekly": validation.weekly}
    if schedule not in tags:
        raise InvalidInput(
            "no such schedule", found=schedule, allowed=listed(tags), where="--schedule"
        )
    made = scheduled(targets, tags[schedule], context)
    return Made(f"the schedule {schedule}", [], made, [], [])


def _served(settings: Settings, graphs: dict[str, Graph]) -> dict[str, tuple[Site, str]]:
    """The partitions that this project has runners for, and how commands name them.

    Raises InvalidInput for a partition that the system does not have.
    """
    found: dict[str, tuple[Site, str]] = {}
    problems = []
    for site in settings.systems:
        system = Path(site.system).stem if site.system.endswith((".yaml", ".yml")) else site.system
        there = [one for name in graphs for one in [name.partition("/")] if one[0] == system]
        parts = [part for _, _, part in there]
        for part in site.partitions or parts:
            if part in parts:
                found[f"{system}/{part}"] = (site, f"{site.system}/{part}")
            else:
                problems.append(
                    Problem(
                        f"system {site.system} has no partition {part}",
                        "settings",
                        allowed=listed(parts),
                    )
                )
    if problems:
        raise InvalidInput(*problems, outcome="No pipeline was made.")
    return found


def contents_in(
    settings: Settings, graphs: dict[str, Graph], plans: Mapping[str, Plan], notes: list[str]
) -> dict[str, set[str]]:
    """Contents of nodes that a cache of the settings has, by partition.

    Notes say which cache cannot be asked. ``plans`` are those of Spack's partitions. The job that
    takes an entry decides whether it is believed; one that is not is built there.
    """
    places = [place(name) for name in settings.caches]
    found: dict[str, set[str]] = {}
    for name, graph in graphs.items():
        mine = found.setdefault(name, set())
        for node in graph.nodes.values():
            for one in places:
                try:
                    if node.key == WHOLE:
                        there = _has_whole(one, plans[name], notes)
                    else:
                        there = _has(one, graph, node, settings.tree_length, notes)
                except Unreachable as why:
                    note = f"cache {one.name} cannot be asked: {why}"
                    if note not in notes:
                        notes.append(note)
                    continue
                if there:
                    mine.add(node.content)
                    break
    return found


def _has_whole(one: Place, plan: Plan, notes: list[str]) -> bool:
    """Whether a cache has all of a plan of Spack's: its signed lock. Raises Unreachable."""
    try:
        return lock.whole(one, plan)
    except BadSignature as error:
        name = f"{plan.system}/{plan.partition}"
        notes.append(f"the lock of {name} in cache {one.name} is not used: {error}")
        return False


def _has(one: Place, graph: Graph, node: Node, length: int, notes: list[str]) -> bool:
    """Whether a cache has ``node`` for a tree whose path has ``length`` characters.

    It must be signed by a key that is trusted here. Raises Unreachable.
    """
    try:
        longest = builder_of(graph.builder).cached(one, graph.os, node)
    except NotBelieved as error:
        notes.append(f"{node.label} of cache {one.name} is not used: {error}")
        return False
    if longest is not None and longest < length:
        notes.append(
            f"{node.label} of cache {one.name} is not used: it was built at a path of "
            f"{longest} characters, shorter than `tree_length: {length}`"
        )
        return False
    return longest is not None
