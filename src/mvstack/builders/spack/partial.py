"""A part of a plan by Spack: the packages that one job of many installs, by their hashes."""

from __future__ import annotations

from collections.abc import Sequence

from mvstack.builders.base import Row, Run, lost
from mvstack.builders.spack import lock
from mvstack.builders.spack.cache import offered
from mvstack.builders.spack.environments import Environment
from mvstack.builders.spack.resolve import installed, pending
from mvstack.model.spack_lock import Lock, Node
from mvstack.support.errors import InvalidInput, Problem, Refused


def install(environments: Sequence[Environment], wanted: frozenset[str], run: Run) -> list[Row]:
    """Install the ``wanted`` packages (DAG hashes) of the locks of ``environments``.

    These are the compiler's, where Spack builds it, and the stack's, in this order; a package of
    the stack needs all of the compiler. What they need is taken from the caches. No module is
    written. Raises InvalidInput for a hash that no lock has, Refused for what cannot be obtained.
    """
    found = [(one, one.locked(run.progress)) for one in environments]
    if left := wanted - {key for _, locked in found for key in locked.answer.nodes}:
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
    rows: list[Row] = []
    for one, locked in found:
        roots = wanted & set(locked.answer.nodes)
        if one is not last and wanted & set(stack.answer.nodes):
            roots |= {root.hash for root in locked.answer.roots}
        if roots:
            rows += _part(one, locked.answer, roots, wanted, run)
    return rows


def _part(
    environment: Environment,
    answer: Lock,
    roots: frozenset[str],
    wanted: frozenset[str],
    run: Run,
) -> list[Row]:
    plan, starts = environment.plan, sorted(roots)
    there = installed(environment.spack.isolated.store)
    in_caches = offered(run.caches, pending(answer, there, (), starts)) if run.caches else set()
    needed = pending(answer, there, in_caches, starts)
    places = [plan.tree, *(place.name for place in (run.caches.places if run.caches else ()))]
    if absent := [node for node in needed if node.hash not in wanted | in_caches]:
        raise Refused(
            *(
                lost(
                    str(node),
                    f"{plan.system}/{plan.partition}",
                    _above(node, needed),
                    f"hash {node.hash}",
                    places,
                )
                for node in absent
            ),
            outcome="Nothing was built.",
        )
    order = [node for node in needed if node.hash in roots]
    if not order:
        run.progress.skip("install", f"{len(roots)} packages", "already there")
        return []
    return environment.build_each(order, answer, run, in_caches)


def _above(below: Node, needed: Sequence[Node]) -> list[str]:
    """Those of ``needed`` that stand on a package directly."""
    return [
        str(node) for node in needed if any(edge.hash == below.hash for edge in node.dependencies)
    ]
