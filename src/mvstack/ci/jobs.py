"""Jobs for the nodes to build, within GitLab's limits; which go together says grouping. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mvstack.ci.graph import Graph, Node
from mvstack.ci.grouping import Grouping

START = 60.0
"""Seconds that a job takes beside its builds: a fetched repository, artifacts to and fro."""

Seconds = Callable[[Node], float]


@dataclass
class Job:
    """Nodes that one job builds in order. ``needs`` are the jobs whose packages it takes.

    A relay builds nothing: it hands on what more jobs made than one job may need.
    """

    name: str
    keys: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    seconds: float = 0.0
    relay: bool = False

    @property
    def slug(self) -> str:
        """Its name as a folder."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def make_jobs(
    graph: Graph,
    build: tuple[str, ...],
    seconds: Seconds,
    *,
    worth: float,
    max_jobs: int,
    max_needs: int,
    start: float = START,
) -> list[Job]:
    """The jobs that build ``build`` (keys in build order), what is needed first.

    ``seconds`` estimates a node; every job takes ``start`` more. What is shorter than ``worth``
    seconds is put together where that delays nothing, and more is while there would be more than
    ``max_jobs``. No job needs more than ``max_needs``, which is at least 2.
    """
    if max_needs < 2:
        raise ValueError("a relay saves nothing where a job may need one other")
    cost = {key: seconds(graph.nodes[key]) for key in build}
    grouping = Grouping(build, _needs_among(graph, set(build)), cost, start)
    stretch = 1.0
    while True:
        grouping.merge(worth, stretch)
        jobs = _relayed(_named(graph, grouping.groups(), cost), max_needs)
        if len(jobs) <= max_jobs or len(grouping) <= 1:
            return jobs
        worth, stretch = max(worth, 1.0) * 2, stretch * 1.5


def _needs_among(graph: Graph, wanted: set[str]) -> dict[str, list[str]]:
    """What each of ``wanted`` needs of them, also by way of nodes that are there already."""
    nearest: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    for key, node in graph.nodes.items():
        found = list(dict.fromkeys(one for need in node.needs for one in nearest[need]))
        nearest[key] = [key] if key in wanted else found
        if key in wanted:
            needs[key] = found
    return needs


def _named(graph: Graph, groups: Sequence[list[str]], cost: dict[str, float]) -> list[Job]:
    """A job for each group; it needs all jobs of which it takes a package, at first hand or not."""
    of = {key: number for number, keys in enumerate(groups) for key in keys}
    jobs: list[Job] = []
    taken: set[str] = set()
    for number, keys in enumerate(groups):
        below = sorted({of[key] for key in graph.closure(keys) if key in of} - {number})
        job = Job(
            f"build:{_title(graph, keys, cost)}",
            keys,
            [jobs[one].name for one in below],
            round(sum(cost[key] for key in keys), 1),
        )
        base, count = job.name, 2
        while job.slug in taken:  # the folder in which it hands on
            job.name, count = f"{base} ({count})", count + 1
        taken.add(job.slug)
        jobs.append(job)
    return jobs


def _title(graph: Graph, keys: Sequence[str], cost: dict[str, float]) -> str:
    """The longest package's name, and how many more there are."""
    node = graph.nodes[max(keys, key=lambda key: cost[key])]
    device = node.mpi.rpartition("-")[2]
    if node.kind == "mpi" and node.key.endswith(".eb"):
        device = node.key.removesuffix(".eb").rpartition("-")[2]
    name = "-".join(word for word in (node.name, node.version, device) if word)
    if graph.by == "lock file":
        name += f"-{node.key[:7]}"
    more = len(keys) - 1
    text = f"{name}+{more}" if more else name
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", text)[:200]


def _relayed(jobs: list[Job], max_needs: int) -> list[Job]:
    """``jobs`` with relays where one needs more than ``max_needs``."""
    result: list[Job] = []
    relays: dict[tuple[str, ...], str] = {}

    def few(needs: list[str]) -> list[str]:
        while len(needs) > max_needs:
            head, rest = tuple(needs[:max_needs]), needs[max_needs:]
            if head not in relays:
                relays[head] = f"relay:{len(relays) + 1}"
                result.append(Job(relays[head], [], list(head), 0.0, relay=True))
            needs = [*rest, relays[head]] if len(rest) >= max_needs else [relays[head], *rest]
        return needs

    for job in jobs:
        job.needs = few(job.needs)
        result.append(job)
    return result
