"""The gates: is what the solver answered what was planned? Pure.

The solver satisfies every requirement it was given. Whether the requirements said what the plan
means, and whether a default, a reuse or an external got in between them, is asked here: of every
package below, of roots and their MPI in mpi.py.
"""

from collections.abc import Collection, Iterable, Mapping

import archspec.cpu

from mvstack.builders.spack.gates.deprecated import Standing
from mvstack.builders.spack.gates.mpi import check_mpis_and_roots
from mvstack.builders.spack.gates.planned import Broken, Case
from mvstack.model.constraint import parse, satisfies, sort_key
from mvstack.model.gates import GATES, Gates, Unique
from mvstack.model.spack_lock import RUNTIME, Lock, Node
from mvstack.plan.targets import family_of
from mvstack.plan.types import Plan

LANGUAGES = frozenset({"c", "cxx", "fortran"})
"""The virtual packages that a compiler provides."""


def check(
    lock: Lock,
    plan: Plan,
    rules: Gates,
    deprecated: Mapping[tuple[str, str], Standing] | None = None,
) -> list[Broken]:
    """Every gate that ``lock`` does not pass, in the order of the gates; [] when it passes all.

    ``deprecated`` is what ``deprecated_versions`` read from the recipes: without it the gate of
    that name has nothing to go by.
    """
    case = Case(lock, plan, rules)
    found = [
        *check_mpis_and_roots(case),
        *check_os(case),
        *check_target(case),
        *check_compiler(case),
        *check_wrapper(case),
        *check_unique(case),
        *check_known_bad(case),
        *check_deprecated(case, deprecated or {}),
    ]
    return sorted(found, key=lambda one: (GATES.index(one.rule), one.package, one.found))


def loaded(case: Case) -> list[Node]:
    """What the programs of the planned packages load: all of it, but for the compiler's own."""
    own = case.compiler if case.compiler_is_root else ""
    starts = [root for root in case.lock.root_nodes() if root.name != own]
    return list(case.lock.closure(starts, RUNTIME))


def check_os(case: Case) -> Iterable[Broken]:
    """Gate os."""
    family = family_of(case.target)
    for node in case.lock.nodes.values():
        if (node.os, family_of(node.target)) != (case.os, family):
            said = (
                f"os={node.os} target={node.target}, planned os={case.os} and a target of {family}"
            )
            passes = f"{node.name}@={node.version} os={case.os} target={case.target}"
            yield case.broken("os", node, said, passes)


def check_target(case: Case) -> Iterable[Broken]:
    """Gate target."""
    known = archspec.cpu.TARGETS.get(case.target)
    older = {case.target, *(one.name for one in (known.ancestors if known else ()))}
    runtime = {node.hash for node in loaded(case)}
    for node in case.lock.nodes.values():
        if node.external or node.name in case.rules.not_compiled.packages:
            continue
        tool = node.hash not in runtime
        if node.target not in (older if tool else {case.target}):
            said = f"target={node.target}, planned {case.target}"
            said += " or an ancestor of it, as a tool of the build" if tool else ""
            passes = f"{node.name}@={node.version} target={case.target}"
            yield case.broken("target", node, said, passes)


def check_compiler(case: Case) -> Iterable[Broken]:
    """Gate compiler."""
    want = f"{case.compiler}@{case.compiler_version}"
    for node in loaded(case):
        for edge in () if node.external else node.dependencies:
            compiler, languages = case.lock.nodes[edge.hash], sorted(edge.virtuals & LANGUAGES)
            if languages and not case.is_compiler(compiler):
                said = f"{', '.join(languages)} by {compiler}, planned {want}"
                passes = f"{node.name}@={node.version} %{want}"
                yield case.broken("compiler", node, said, passes)


def check_wrapper(case: Case) -> Iterable[Broken]:
    """Gate wrapper."""
    for node in case.lock.built():
        below = {edge.name for edge in node.dependencies}
        if "compiler-wrapper" not in below and any(
            e.virtuals & LANGUAGES for e in node.dependencies
        ):
            passes = f"{node.name}@={node.version} ^compiler-wrapper"
            yield case.broken("wrapper", node, "no compiler-wrapper among what it needs", passes)


def check_unique(case: Case) -> Iterable[Broken]:
    """Gate unique, within each root and within the whole environment."""
    for row in case.rules.unique:
        if row.within == "environment":
            yield from _more_than_one(row, "the environment", case.lock.nodes.values())
            continue
        for root in case.lock.root_nodes():
            yield from _more_than_one(row, str(root), list(case.lock.closure([root], RUNTIME)))


def _more_than_one(row: Unique, where: str, nodes: Collection[Node]) -> Iterable[Broken]:
    for name in row.packages:
        same = sorted((node for node in nodes if node.name == name), key=_newest_first)
        if len(same) > 1:
            said = f"{len(same)} builds: {', '.join(map(str, same))}"
            passes = f"{name}@={same[0].version} for all"
            package = f"{name} within {where}"
            yield Broken(package, "unique", said, row.why, row.source, passes)


def _newest_first(node: Node) -> tuple[list[tuple[int, int, str]], str]:
    return [(-rank, -number, word) for rank, number, word in sort_key(node.version)], node.hash


def check_known_bad(case: Case) -> Iterable[Broken]:
    """Gate known-bad: the site's packages as well as ours."""
    for row in case.rules.known_bad:
        wanted = parse(row.spec)
        for node in case.lock.nodes.values():
            if node.name == wanted.name and satisfies(case.lock, node, wanted):
                told = (row.spec, row.why, row.source, row.instead, row.id)
                yield Broken(str(node), "known-bad", *told)


def check_deprecated(case: Case, standing: Mapping[tuple[str, str], Standing]) -> Iterable[Broken]:
    """Gate deprecated, by what the recipes say; what a site provides it may have as it likes."""
    for node in case.lock.nodes.values():
        known = standing.get((node.namespace, node.name))
        if node.external or known is None or node.version not in known.deprecated:
            continue
        name = f"{node.namespace}.{node.name}"
        passes = f"none of {name}: all its versions are deprecated"
        if known.current:
            passes = f"{node.name}@={known.current[0]}"
        said = f"{name} calls {node.version} deprecated"
        yield case.broken("deprecated", node, said, passes)
