"""Cut a graph into jobs: one for each package, as long as GitLab allows so many. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mvstack.ci.graph import Graph


@dataclass
class Job:
    """Nodes that one job builds, in order. ``needs`` are the jobs whose packages it takes."""

    name: str
    keys: list[str]
    needs: list[str]

    @property
    def slug(self) -> str:
        """Its name as a folder."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


def make_jobs(graph: Graph, build: Sequence[str], most: int) -> list[Job]:
    """The jobs that build the nodes ``build`` (in build order), at most ``most``.

    Each node has a job of its own if there are no more than ``most``. Else the nodes of a level,
    which do not need each other, are cut into chunks of one size. As a job needs none but jobs
    before it, ``most`` is also the most that one can need.
    """
    levels = _levels(graph, build)
    size = 1
    while sum(-(-len(level) // size) for level in levels) > most and size < len(build):
        size += 1
    groups = [chunk for level in levels for chunk in _chunks(level, size)]
    if len(groups) > most:  # more levels than jobs
        in_order = [key for level in levels for key in level]
        groups = _chunks(in_order, -(-len(in_order) // most))
    return _named(graph, groups)


def _levels(graph: Graph, build: Sequence[str]) -> list[list[str]]:
    """``build`` by the length of the chain below each node, also by way of nodes not built."""
    wanted, depth = set(build), dict[str, int]()
    levels: list[list[str]] = []
    for key, node in graph.nodes.items():
        below = max((depth[need] for need in node.needs), default=0)
        depth[key] = below + (key in wanted)
        if key in wanted:
            if below == len(levels):
                levels.append([])
            levels[below].append(key)
    return levels


def _chunks(keys: Sequence[str], size: int) -> list[Sequence[str]]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _named(graph: Graph, groups: Sequence[Sequence[str]]) -> list[Job]:
    """A job for each group; it needs all jobs whose packages it stands on, directly or not."""
    of = {key: number for number, keys in enumerate(groups) for key in keys}
    jobs: list[Job] = []
    taken: set[str] = set()
    for number, keys in enumerate(groups):
        below = sorted({of[key] for key in graph.closure(keys) if key in of} - {number})
        base = f"build:{_title(graph, keys)}"
        job = Job(base, list(keys), [jobs[one].name for one in below])
        count = 2
        while job.slug in taken:  # the folder in which it hands on
            job.name, count = f"{base} ({count})", count + 1
        taken.add(job.slug)
        jobs.append(job)
    return jobs


def _title(graph: Graph, keys: Sequence[str]) -> str:
    """The first package's name, and how many more there are."""
    node = graph.nodes[keys[0]]
    name = "-".join(word for word in (node.name, node.version, node.device) if word)
    if graph.by == "lock file":
        name += f"-{node.key[:7]}"
    text = f"{name}+{len(keys) - 1}" if len(keys) > 1 else name
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", text)[:200]
