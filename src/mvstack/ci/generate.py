"""``mvstack ci generate``: from a change to the pipelines that carry it out, explained."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mvstack.builders.base import builder_of
from mvstack.cache.place import NotBelieved, Unreachable, place
from mvstack.ci import lock
from mvstack.ci.changes import Beyond, Todo, todo
from mvstack.ci.graph import WHOLE, Graph, read_graphs
from mvstack.ci.handover import deployed_state, keyring
from mvstack.ci.pipeline import Context, Pipelines, Target, pipelines, scheduled
from mvstack.ci.sites import both_sides, check_project
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.plan.types import Plan
from mvstack.support.progress import Progress

FOREIGN = ("merge_request_event", "external_pull_request_event")
"""Sources of pipelines for changes that nobody has accepted yet."""

NONE = "0" * 40
"""What GitLab gives for the commit before when there is none."""


@dataclass(frozen=True)
class Wanted:
    """What pipelines are wanted for: the change since ``base``, or a ``schedule`` of the policy.

    With ``everything`` all partitions are made, whatever changed.
    """

    base: str = ""
    schedule: str = ""
    everything: bool = False


@dataclass(frozen=True)
class Made:
    """What a pipeline's first job has to tell and to write."""

    against: str
    todos: list[Todo]
    pipelines: Pipelines
    unserved: list[str]
    notes: list[str]


def trust_of(environment: Mapping[str, str]) -> tuple[bool, str]:
    """Whether a pipeline with these variables of GitLab may sign, push and deploy, and why.

    GitLab gives protected variables to pipelines of protected branches and tags only; this decides
    in the same way which jobs exist, so that a job without its key is never even generated.
    """
    source = environment.get("CI_PIPELINE_SOURCE", "")
    if not source:
        return False, "this is not a GitLab pipeline"
    if source in FOREIGN or environment.get("CI_MERGE_REQUEST_IID"):
        theirs = environment.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
        ours = environment.get("CI_MERGE_REQUEST_PROJECT_ID", "")
        fork = theirs and ours and theirs != ours
        return False, "a merge request from a fork" if fork else "a merge request"
    if environment.get("CI_COMMIT_REF_PROTECTED") != "true":
        return False, "its branch or tag is not protected"
    return True, "its branch or tag is protected"


def base_of(environment: Mapping[str, str]) -> str:
    """The commit that this pipeline's change is against; "" when GitLab names none."""
    for name in ("CI_MERGE_REQUEST_DIFF_BASE_SHA", "CI_COMMIT_BEFORE_SHA"):
        value = environment.get(name, "")
        if value and value != NONE:
            return value
    return ""


def generate(project: Path, file: Path, context: Context, wanted: Wanted) -> Made:
    """The pipelines of ``project`` whose settings file is ``file``, named from the project.

    Raises InvalidInput, Refused.
    """
    settings = context.settings
    check_project(project, file, settings, building=not wanted.schedule)
    locks = project / settings.locks if settings.locks else None
    base = "" if wanted.schedule else wanted.base
    with both_sides(project, file, context, base) as (before, now):
        notes: list[str] = []
        old = read_graphs(before) if before else {}
        names, planned = lock.spack_plans(now)
        served = _served(settings, names)
        if wanted.schedule:
            new = read_graphs(now)
            targets = [Target(Todo(new[name]), *named) for name, named in served.items()]
            made = scheduled(targets, getattr(ci_policy().validation, wanted.schedule), context)
            return Made(f"the schedule {wanted.schedule}", [], made, [], [])
        plans = {
            name: lock.over_compilers(plan, served[name][0].compilers)
            for name, plan in planned.items()
            if name in served
        }
        locked = lock.usable(locks, plans, notes)
        with keyring(trust=[project / one for one in settings.trust]):
            for name in {*plans} - {*locked} if settings.solve else ():
                locked[name] = lock.solved_for(plans[name], settings.caches, Progress())
            new = read_graphs(now, locked)
            graphs = {name: new[name] for name in served}
            found = contents_in(settings, graphs, plans, notes)
        todos = []
        for name, graph in new.items():
            own = served.get(name)
            finish = context.trusted and bool(settings.push) and own is not None
            deployed = deployed_state(settings, *own) if own else None
            beyond = Beyond(wanted.everything, finish, deployed)
            have = found.get(name, set())
            todos.append(todo(old.get(name), graph, have, ci_policy().validation, beyond))
        targets = [
            Target(
                one,
                *served[one.name],
                lock=locked.get(one.name),
                compiler=one.name in plans and plans[one.name] != planned[one.name],
            )
            for one in todos
            if one.name in served
        ]
        made = pipelines(targets, context)
    unserved = [one.name for one in todos if one.touched and one.name not in served]
    against = before.name if before else "nothing: everything is new"
    return Made(against, todos, made, unserved, notes)


def _served(settings: Settings, names: Iterable[str]) -> dict[str, tuple[Site, str]]:
    """The partitions that this project has runners for, and how commands name them."""
    found: dict[str, tuple[Site, str]] = {}
    for site in settings.systems:
        system = Path(site.system).stem if site.system.endswith((".yaml", ".yml")) else site.system
        parts = [name.partition("/")[2] for name in names if name.startswith(f"{system}/")]
        for part in site.partitions or parts:
            found[f"{system}/{part}"] = (site, f"{site.system}/{part}")
    return found


def contents_in(
    settings: Settings, graphs: dict[str, Graph], plans: Mapping[str, Plan], notes: list[str]
) -> dict[str, set[str]]:
    """Contents of nodes that a cache of the settings has, by partition.

    They must be signed by a key that is trusted here, and fit a tree whose path has the settings'
    length. Notes say what is not used, and which cache cannot be asked. ``plans`` are those of
    partitions with a solver. The job that takes an entry decides whether it is believed; one that
    is not is built there.
    """
    places = [place(name) for name in settings.caches]
    length = settings.tree_length
    found: dict[str, set[str]] = {name: set() for name in graphs}
    for name, graph in graphs.items():
        builder = builder_of(graph.builder)
        for node in graph.nodes.values():
            what = f"the lock of {name}" if node.key == WHOLE else node.label
            for one in places:
                why = ""
                try:
                    if node.key == WHOLE:
                        longest = length if lock.believed(one, plans[name]) else None
                    else:
                        longest = builder.cached(one, graph.os, node)
                except NotBelieved as error:
                    longest, why = None, str(error)
                except Unreachable as error:
                    note = f"cache {one.name} cannot be asked: {error}"
                    notes += [note] if note not in notes else []
                    continue
                if longest is not None and longest < length:
                    built = f"it was built at a path of {longest} characters"
                    why = f"{built}, shorter than `tree_length: {length}`"
                if why:
                    notes.append(f"{what} of cache {one.name} is not used: {why}")
                elif longest is not None:
                    found[name].add(node.content)
                    break
    return found
