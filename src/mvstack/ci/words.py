"""What a change asks for, in a person's words. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from mvstack.ci.changes import Todo
from mvstack.ci.jobs import Job
from mvstack.support.units import count
from mvstack.support.words import few

Jobs = Mapping[str, list[Job]]


def explained(against: str, todos: list[Todo], jobs: Jobs) -> str:
    """What changed, what follows from it, and where: the last lines of a pipeline's first job."""
    lines = [f"against {against}:"]
    lines += [f"  {line}" for line in (*_origins(todos), *_others(todos))]
    touched = [one for one in todos if one.touched]
    if not touched:
        lines.append("  nothing that is built, checked or deployed changed")
    served = [one for one in touched if one.name in jobs] if jobs else touched
    for one in touched:
        more = "" if one in served else "; no runner of this project serves it"
        lines.append(f"{one.name} ({one.graph.builder}, by {one.graph.by}): {_line(one)}{more}")
        for job in jobs.get(one.name, ()):
            lines.append(f"  {job.name}: {few(one.graph.nodes[key].label for key in job.keys)}")
    if same := [one.name for one in todos if not one.touched]:
        lines.append(f"nothing to do for {few(same)}")
    builds = sum(len(one.build) for one in served)
    cut = sum(map(len, jobs.values()))
    lines.append(
        f"in all: {count(builds, 'build')} in {count(cut, 'job')} for "
        f"{count(len(served), 'partition')}"
    )
    return "\n".join(lines)


def _origins(todos: list[Todo]) -> list[str]:
    """A line each: ``HPCC 1.5.0 changed (easyconfig): 2 builds on 2 systems; MPI unchanged``."""
    found: dict[tuple[str, str, tuple[str, ...]], list[tuple[Todo, int]]] = {}
    for todo in todos:
        for origin in todo.origins:
            key = (f"{origin.node.name} {origin.node.version}".strip(), origin.what, origin.why)
            here = set(todo.build)
            found.setdefault(key, []).append((todo, sum(one in here for one in origin.builds)))
    lines = []
    for (name, what, why), rows in found.items():
        places = dict.fromkeys(todo.name for todo, _ in rows)
        systems = dict.fromkeys(place.partition("/")[0] for place in places)
        builds = sum(number for _, number in rows)
        mpi = "MPI rebuilt" if any(todo.mpi for todo, _ in rows) else "MPI unchanged"
        reason = f" ({'; '.join(why)})" if why else ""
        lines.append(
            f"{name} {what}{reason}: {count(builds, 'build')} on {count(len(systems), 'system')} "
            f"({few(places)}); {mpi}"
        )
    return lines


def _others(todos: list[Todo]) -> list[str]:
    """A line for each aspect, check or package that is not as it was, with the partitions."""
    found: dict[str, list[str]] = {}
    for todo in todos:
        changed = [] if todo.new else [*todo.aspects, *(f"check {one}" for one in todo.checks)]
        said = [f"{name} changed on" for name in changed]
        for what in [*said, *(f"{node.label} was removed from" for node in todo.gone)]:
            found.setdefault(what, []).append(todo.name)
    return [f"{what} {few(places)}" for what, places in found.items()]


def _line(todo: Todo) -> str:
    parts = {
        "new": todo.new,
        "an earlier pipeline did not finish": todo.unfinished,
        count(len(todo.build), "build") if todo.build else "no builds": True,
        f"{len(todo.absent)} of them unchanged and in no cache": todo.absent,
        f"{len(todo.cached)} changed and already in a cache": todo.cached,
        "it has no lock file: one job builds all of it": todo.lock,
        f"checks {', '.join(todo.tags)}" if todo.tags else "no checks": True,
        "its image": todo.image,
    }
    return "; ".join(text for text, told in parts.items() if told)


def as_data(against: str, todos: list[Todo], jobs: Jobs) -> dict[str, Any]:
    """The same for a script."""
    names = ("touched", "new", "build", "absent", "cached", "aspects", "checks", "image", "lock")
    partitions = {
        one.name: {
            "builder": one.graph.builder,
            "by": one.graph.by,
            **{name: getattr(one, name) for name in (*names, "mpi")},
            "validate": one.tags,
            "gone": [node.label for node in one.gone],
            "origins": [{"name": o.node.label, "what": o.what, "why": o.why} for o in one.origins],
            "jobs": [asdict(job) for job in jobs.get(one.name, ())],
        }
        for one in todos
    }
    return {"against": against, "partitions": partitions}
