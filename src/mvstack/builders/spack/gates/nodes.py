"""The gates about every package of a lock file, roots or not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import archspec.cpu

from mvstack.builders.spack.gates.deprecated import Standing
from mvstack.builders.spack.gates.planned import Broken, Planned, broken
from mvstack.model.constraint import matches_version, parse, satisfies, sort_key
from mvstack.model.gates import Gates, Unique
from mvstack.model.spack_lock import RUNTIME, Lock, Node

LANGUAGES = frozenset({"c", "cxx", "fortran"})
"""The virtual packages that a compiler provides."""


def loaded(lock: Lock, planned: Planned) -> list[Node]:
    """What the programs of the planned packages load: all of it, but for the compiler's own."""
    starts = [
        root
        for root in lock.root_nodes()
        if not (planned.compiler_is_root and root.name == planned.compiler)
    ]
    return list(lock.closure(starts, RUNTIME))


def check_target(lock: Lock, planned: Planned, rules: Gates) -> Iterable[Broken]:
    """Gate target."""
    known = archspec.cpu.TARGETS.get(planned.target)
    older = {planned.target, *(one.name for one in (known.ancestors if known else ()))}
    runtime = {node.hash for node in loaded(lock, planned)}
    for node in lock.nodes.values():
        if node.external or node.name in rules.not_compiled.packages:
            continue
        allowed = {planned.target} if node.hash in runtime else older
        if node.target not in allowed:
            said = f"target={node.target}, planned {planned.target}"
            if node.hash not in runtime:
                said += " or an ancestor of it, as a tool of the build"
            passes = f"{node.name}@={node.version} target={planned.target}"
            yield broken(rules, "target", str(node), said, passes)


def check_compiler(lock: Lock, planned: Planned, rules: Gates) -> Iterable[Broken]:
    """Gate compiler."""
    for node in loaded(lock, planned):
        if node.external:
            continue
        for edge in node.dependencies:
            compiler = lock.nodes[edge.hash]
            languages = sorted(edge.virtuals & LANGUAGES)
            if not languages or (
                compiler.name == planned.compiler
                and matches_version(compiler.version, (planned.compiler_version,))
            ):
                continue
            want = f"{planned.compiler}@{planned.compiler_version}"
            said = f"{', '.join(languages)} by {compiler}, planned {want}"
            passes = f"{node.name}@={node.version} %{want}"
            yield broken(rules, "compiler", str(node), said, passes)


def check_unique(lock: Lock, rules: Gates) -> Iterable[Broken]:
    """Gate unique, within each root and within the whole environment."""
    for row in rules.unique:
        if row.within == "environment":
            yield from _more_than_one(row, "the environment", list(lock.nodes.values()))
            continue
        for root in lock.root_nodes():
            yield from _more_than_one(row, str(root), list(lock.closure([root], RUNTIME)))


def _more_than_one(row: Unique, where: str, nodes: list[Node]) -> Iterable[Broken]:
    for name in row.packages:
        same = sorted((node for node in nodes if node.name == name), key=_newest_first)
        if len(same) > 1:
            said = f"{len(same)} builds: {', '.join(map(str, same))}"
            passes = f"{name}@={same[0].version} for all"
            package = f"{name} within {where}"
            yield Broken(package, "unique", said, row.why, row.source, passes)


def _newest_first(node: Node) -> tuple[list[tuple[int, int, str]], str]:
    return [(-rank, -number, word) for rank, number, word in sort_key(node.version)], node.hash


def check_known_bad(lock: Lock, rules: Gates) -> Iterable[Broken]:
    """Gate known-bad: the site's packages as well as ours."""
    for row in rules.known_bad:
        wanted = parse(row.spec)
        for node in lock.nodes.values():
            if node.name == wanted.name and satisfies(lock, node, wanted):
                yield Broken(
                    str(node), "known-bad", row.spec, row.why, row.source, row.instead, row.id
                )


def check_deprecated(
    lock: Lock, rules: Gates, standing: Mapping[tuple[str, str], Standing]
) -> Iterable[Broken]:
    """Gate deprecated, by what the recipes say; what a site provides it may have as it likes."""
    for node in lock.nodes.values():
        of_recipe = standing.get((node.namespace, node.name))
        if node.external or of_recipe is None or node.version not in of_recipe.deprecated:
            continue
        passes = f"{node.name}@={of_recipe.current[0]}" if of_recipe.current else ""
        yield broken(
            rules,
            "deprecated",
            str(node),
            f"{node.namespace}.{node.name} calls {node.version} deprecated",
            passes or f"none of {node.namespace}.{node.name}: all its versions are deprecated",
        )
