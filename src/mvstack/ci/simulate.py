"""How long pipelines take on so many runners, from the estimates of their jobs. Pure.

List scheduling: whenever a runner is free it takes, of the jobs whose needs have ended, the one
with the longest way to the end. GitLab's runners take the job that has waited longest, which may be
worse; neither order takes more than 2 - 1/m times the shortest time possible on m runners of one
class (R. L. Graham, Bounds on multiprocessing timing anomalies, 1969).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mvstack.ci.jobs import Job

Key = tuple[str, str]
"""Pipeline and job."""


@dataclass(frozen=True)
class Slot:
    """When a job ran, in seconds from the pipelines' start."""

    pipeline: str
    job: str
    begin: float
    end: float


@dataclass(frozen=True)
class Simulated:
    """What a run of pipelines costs. Times in seconds; ``busy`` is the share of the runners' time.

    ``critical_path`` are the jobs of the longest chain of needs, ``critical_seconds`` what it takes
    on any number of runners. ``core_hours`` counts all cores of a runner while it has a job.
    """

    makespan: float
    critical_path: tuple[str, ...]
    critical_seconds: float
    core_hours: float
    jobs: int
    busy: float
    slots: tuple[Slot, ...] = ()


def simulate(
    pipelines: Mapping[str, list[Job]],
    runners: int | Mapping[str, int],
    start_seconds: float,
    *,
    cores: int = 1,
    classes: Mapping[str, str] | None = None,
) -> Simulated:
    """Run ``pipelines``, which begin together, on ``runners`` runners of ``cores`` cores each.

    A job takes ``start_seconds`` (waiting for its environment, artifacts to and fro) and its
    estimate. ``runners`` may be a number for each class of runners; ``classes`` then gives the
    class of each pipeline. Raises ValueError for a job that needs itself or what no job of its
    pipeline is, and for a pipeline that no runner can take.
    """
    jobs = {(name, job.name): job for name, listed in pipelines.items() for job in listed}
    length = {key: start_seconds + job.seconds for key, job in jobs.items()}
    order = _order(jobs)
    ways = _ways(jobs, length, order)
    pool = {name: (classes or {}).get(name, "") for name in pipelines}
    counts = {"": runners} if isinstance(runners, int) else dict(runners)
    if isinstance(runners, int):
        pool = dict.fromkeys(pool, "")
    for name, one in pool.items():
        if counts.get(one, 0) < 1:
            raise ValueError(f"no runner can take the jobs of {name}")
    slots = _run(jobs, length, ways, {key: pool[key[0]] for key in jobs}, counts)
    makespan = max((slot.end for slot in slots), default=0.0)
    path = _path(jobs, ways)
    total = sum(length.values())
    return Simulated(
        makespan=makespan,
        critical_path=tuple(f"{name}: {job}" for name, job in path),
        critical_seconds=ways[path[0]] if path else 0.0,
        core_hours=total * cores / 3600,
        jobs=len(jobs),
        busy=total / (makespan * sum(counts.values())) if makespan else 0.0,
        slots=tuple(slots),
    )


def _order(jobs: Mapping[Key, Job]) -> list[Key]:
    """The jobs, each after all that it needs."""
    waits = {key: len(set(job.needs)) for key, job in jobs.items()}
    above = _above(jobs)
    ready = [key for key, count in waits.items() if not count]
    for key in ready:
        for one in above[key]:
            waits[one] -= 1
            if not waits[one]:
                ready.append(one)
    if len(ready) < len(jobs):
        stuck = next(f"{name}: {job}" for (name, job), count in waits.items() if count)
        raise ValueError(f"{stuck} waits for itself")
    return ready


def _above(jobs: Mapping[Key, Job]) -> dict[Key, list[Key]]:
    above: dict[Key, list[Key]] = {key: [] for key in jobs}
    for key, job in jobs.items():
        for need in set(job.needs):
            if (key[0], need) not in jobs:
                raise ValueError(f"{key[0]}: {key[1]} needs {need}, which is no job")
            above[(key[0], need)].append(key)
    return above


def _ways(
    jobs: Mapping[Key, Job], length: Mapping[Key, float], order: Iterable[Key]
) -> dict[Key, float]:
    """Seconds from each job's begin to the end of the longest chain that waits for it."""
    after = dict.fromkeys(jobs, 0.0)
    ways: dict[Key, float] = {}
    for key in reversed([*order]):
        ways[key] = length[key] + after[key]
        for need in jobs[key].needs:
            below = (key[0], need)
            after[below] = max(after[below], ways[key])
    return ways


def _path(jobs: Mapping[Key, Job], ways: Mapping[Key, float]) -> list[Key]:
    """The longest chain of needs, what begins first."""
    above = _above(jobs)
    found: list[Key] = []
    choice = list(jobs)
    while choice:
        found.append(max(choice, key=lambda key: ways[key]))
        choice = above[found[-1]]
    return found


def _run(
    jobs: Mapping[Key, Job],
    length: Mapping[Key, float],
    ways: Mapping[Key, float],
    pool: Mapping[Key, str],
    counts: Mapping[str, int],
) -> list[Slot]:
    above = _above(jobs)
    place = {key: number for number, key in enumerate(jobs)}  # ties: as they stand there
    waits = {key: len(set(job.needs)) for key, job in jobs.items()}
    ready: dict[str, list[tuple[float, int, Key]]] = {one: [] for one in counts}
    free = dict(counts)
    running: list[tuple[float, int, Key]] = []
    slots: list[Slot] = []
    now = 0.0

    def wait(key: Key) -> None:
        heapq.heappush(ready[pool[key]], (-ways[key], place[key], key))

    for key, count in waits.items():
        if not count:
            wait(key)
    while True:
        for one, queue in ready.items():
            while queue and free[one]:
                key = heapq.heappop(queue)[2]
                free[one] -= 1
                end = now + length[key]
                heapq.heappush(running, (end, place[key], key))
                slots.append(Slot(key[0], key[1], now, end))
        if not running:
            return slots
        now = running[0][0]
        while running and running[0][0] == now:
            done = heapq.heappop(running)[2]
            free[pool[done]] += 1
            for key in above[done]:
                waits[key] -= 1
                if not waits[key]:
                    wait(key)
