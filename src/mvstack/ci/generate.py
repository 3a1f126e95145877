"""``mvstack ci generate``: from a change to the pipelines that carry it out, explained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mvstack.cache.gpg import BadSignature
from mvstack.cache.place import NotBelieved, Place, Unreachable, place
from mvstack.cache.store import find
from mvstack.ci.changes import Todo, todo
from mvstack.ci.deployed import record_of
from mvstack.ci.estimate import seconds
from mvstack.ci.graph import WHOLE, Graph, Node, read_graphs
from mvstack.ci.handed_lock import whole
from mvstack.ci.handover import keyring
from mvstack.ci.locks import copied, refuse_own_compilers, spack_plans, usable
from mvstack.ci.pipeline import Context, Pipelines, Target, pipelines, scheduled
from mvstack.ci.sites import Sides, both_sides
from mvstack.model.ci import Settings, Site, load_settings
from mvstack.model.ci_policy import CiPolicy, ci_policy
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Problem
from mvstack.support.words import listed

CORES = 8
"""Cores of a runner, for estimates, where nothing says otherwise."""


@dataclass(frozen=True)
class Made:
    """What a pipeline's first job has to tell and to write."""

    against: str
    todos: list[Todo]
    pipelines: Pipelines
    unserved: list[str]
    notes: list[str]


def generate(
    project: Path,
    file: Path,
    base: str,
    context: Context,
    *,
    schedule: str = "",
    locks: Path | None = None,
    everything: bool = False,
    cores: int = CORES,
) -> Made:
    """The pipelines for the change of ``project`` since ``base``, or for ``schedule``.

    ``file`` is the settings file, from the project. With ``everything`` all partitions are made,
    whatever changed. Raises InvalidInput, Refused.
    """
    settings, policy = load_settings(project / file), ci_policy()
    if locks is None and settings.locks:
        locks = project / settings.locks
    with (
        both_sides(project, settings, file, "" if schedule else base) as sides,
        TemporaryDirectory(prefix="mvstack-") as folder,
    ):
        notes: list[str] = []
        old = read_graphs(sides.old) if sides.old else {}
        plans = spack_plans(sides.new)
        locked = usable(locks, plans, notes)
        new = read_graphs(sides.new, copied(locked, Path(folder)))
        served = _served(settings, new)
        plans = {name: plan for name, plan in plans.items() if name in served}
        if not schedule:
            refuse_own_compilers(plans)
        with keyring(trust=[project / one for one in settings.trust]):
            found = contents_in(settings, new, served, notes, plans)
        todos = [
            todo(
                old.get(name),
                graph,
                found.get(name, set()),
                policy.validation,
                all_of=everything,
                finish=context.trusted and bool(settings.push) and name in served,
                deployed=deployed_state(settings, *served[name]) if name in served else None,
            )
            for name, graph in new.items()
        ]
        targets = [
            Target(one, *served[one.name], lock=locked.get(one.name))
            for one in todos
            if one.name in served
        ]
        return _made(sides, todos, targets, settings, policy, context, schedule, notes, cores)


def deployed_state(settings: Settings, site: Site, partition: str) -> str | None:
    """The state that was deployed last; "" when none was, None where nothing is ever deployed.

    A cache that cannot be asked counts as one that has no record.
    """
    if not (site.root and settings.push):
        return None
    try:
        found = place(settings.push).read(record_of(partition))
        return str(json.loads(found)["state"]) if found else ""
    except (Unreachable, ValueError, KeyError, TypeError):
        return ""


def _made(
    sides: Sides,
    todos: list[Todo],
    targets: list[Target],
    settings: Settings,
    policy: CiPolicy,
    context: Context,
    schedule: str,
    notes: list[str],
    cores: int,
) -> Made:
    if schedule:
        tags = {"nightly": policy.validation.nightly, "weekly": policy.validation.weekly}
        if schedule not in tags:
            raise InvalidInput(
                Problem(
                    "no such schedule", found=schedule, allowed=listed(tags), where="--schedule"
                )
            )
        made = scheduled(targets, tags[schedule], settings, policy, context)
        return Made(f"the schedule {schedule}", [], made, [], notes)
    made = pipelines(targets, settings, policy, context, lambda node: seconds(node, cores))
    served = {one.todo.name for one in targets}
    unserved = [one.name for one in todos if one.touched and one.name not in served]
    return Made(sides.against, todos, made, unserved, notes)


def _served(settings: Settings, graphs: dict[str, Graph]) -> dict[str, tuple[Site, str]]:
    """The partitions that this project has runners for, and how commands name them.

    Raises InvalidInput for a partition that the system has not.
    """
    found: dict[str, tuple[Site, str]] = {}
    problems = []
    for site in settings.systems:
        system = Path(site.system).stem if site.system.endswith((".yaml", ".yml")) else site.system
        there = [name for name in graphs if name.partition("/")[0] == system]
        for part in site.partitions:
            if f"{system}/{part}" not in there:
                problems.append(
                    Problem(
                        f"system {site.system} has no partition {part}",
                        "settings",
                        allowed=listed(name.partition("/")[2] for name in there),
                    )
                )
        for name in there:
            part = name.partition("/")[2]
            if not site.partitions or part in site.partitions:
                found[name] = (site, f"{site.system}/{part}")
    if problems:
        raise InvalidInput(*problems, outcome="No pipeline was made.")
    return found


def contents_in(
    settings: Settings,
    graphs: dict[str, Graph],
    served: Iterable[str],
    notes: list[str],
    plans: Mapping[str, Plan],
) -> dict[str, set[str]]:
    """Contents of nodes that a cache of the settings has, by partition.

    Notes say which cache cannot be asked. ``plans`` are those of Spack's partitions.

    Whether an entry is believed is for the job that takes it; one that is not is built anew there.
    """
    from mvstack.builders.spack.cache import entry

    places = [place(name) for name in settings.caches]
    found: dict[str, set[str]] = {}
    for name in served:
        graph = graphs[name]
        mine = found.setdefault(name, set())
        for node in graph.nodes.values():
            for one in places:
                try:
                    if node.key == WHOLE:
                        there = _has_whole(one, plans[name], notes)
                    elif graph.builder == "spack":
                        folder = one.folder
                        there = bool(folder and entry(folder / "spack", node.name, node.content))
                    else:
                        there = has(one, graph, node, settings.tree_length, notes)
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
        return whole(one, plan)
    except BadSignature as error:
        name = f"{plan.system}/{plan.partition}"
        notes.append(f"the lock of {name} in cache {one.name} is not used: {error}")
        return False


def has(one: Place, graph: Graph, node: Node, length: int, notes: list[str]) -> bool:
    """Whether a cache has ``node`` for a tree whose path has ``length`` characters.

    It must be signed by a key that is trusted here. Raises Unreachable.
    """
    try:
        entry = find(one, graph.os, node.content)
    except NotBelieved as error:
        notes.append(f"{node.label} of cache {one.name} is not used: {error}")
        return False
    if entry is None:
        return False
    if len(entry.manifest.tree) < length:
        notes.append(
            f"{node.label} of cache {one.name} is not used: its tree had a path of "
            f"{len(entry.manifest.tree)} characters, and jobs build in one of {length}: tree_length"
        )
        return False
    return True
