"""A part of a plan by Spack: the wanted packages of its locks, as one job of many installs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mvstack.builders.easybuild.partial import missing
from mvstack.builders.spack import lock
from mvstack.builders.spack.cache import offered
from mvstack.builders.spack.environments import Environment
from mvstack.builders.spack.graph import Graph, installed
from mvstack.cache.use import Caches
from mvstack.sources import Fetcher
from mvstack.support.errors import InvalidInput, Problem, Refused
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

Row = dict[str, Any]


def install(
    environments: Sequence[Environment],
    wanted: frozenset[str],
    caches: Caches | None,
    fetcher: Fetcher,
    records: Records,
    progress: Progress,
) -> list[Row]:
    """Install the ``wanted`` packages (DAG hashes) of the locks of ``environments``.

    These are the compiler's, where Spack builds it, and the stack's, in this order; a package of
    the stack needs all of the compiler. What they need is taken from ``caches``. No module is
    written. Raises InvalidInput for a hash that no lock has, Refused for what cannot be had.
    """
    found: list[tuple[Environment, lock.Locked]] = []
    rows: list[Row] = []
    left = set(wanted)
    for one in environments:
        locked = one.locked(progress)
        found.append((one, locked))
        left -= set(locked.graph.nodes)
    if left:
        raise InvalidInput(
            *(
                Problem(
                    f"no package of this plan has the hash {key}",
                    ", ".join(str(locked.file) for _, locked in found),
                    todo="have all jobs take the lock that the pipeline was made from",
                )
                for key in sorted(left)
            ),
            outcome="Nothing was installed.",
        )
    last, stack = found[-1]
    lock.through_the_gates(stack, last.plan.as_dict(), last.spack.isolated.clones)
    for one, locked in found:
        roots = wanted & set(locked.graph.nodes)
        if one is not last and wanted & set(stack.graph.nodes):
            roots |= {row["hash"] for row in locked.graph.roots}
        if roots:
            rows += _part(one, locked.graph, roots, wanted, caches, fetcher, records, progress)
    return rows


def _part(
    environment: Environment,
    graph: Graph,
    roots: frozenset[str],
    wanted: frozenset[str],
    caches: Caches | None,
    fetcher: Fetcher,
    records: Records,
    progress: Progress,
) -> list[Row]:
    plan = environment.plan
    graph = replace(graph, roots=[{"hash": key} for key in sorted(roots)])
    there = installed(environment.spack.isolated.store)
    asked = graph.pending(there)
    in_caches = offered(caches, asked) if caches else set()
    needed = graph.pending(there, in_caches)
    if lost := [node for node in needed if node.hash not in wanted | in_caches]:
        raise Refused(
            *(
                missing(
                    node.short,
                    f"{plan.system}/{plan.partition}",
                    _above(graph, node.hash, needed),
                    f"hash {node.hash}",
                    [plan.tree, *(place.name for place in (caches.places if caches else ()))],
                )
                for node in lost
            ),
            outcome="Nothing was built.",
        )
    order = [node for node in needed if node.hash in roots]
    if not order:
        progress.skip("install", f"{len(roots)} packages", "already there")
        return []
    return environment.build_each(order, graph, fetcher, records, progress, in_caches)


def _above(graph: Graph, key: str, needed: Sequence[Any]) -> list[str]:
    """Those of ``needed`` that stand on a package directly."""
    return [
        node.short
        for node in needed
        if any(row["hash"] == key for row in graph.specs[node.hash].get("dependencies", ()))
    ]
