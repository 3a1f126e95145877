"""The gates about roots and their MPI: what was planned is there, over the MPI it was planned over.

Pure. Planned builds and roots are paired first, the best fitting ones before the others, so that
an error says how a root differs from what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from mvstack.builders.spack.gates.planned import Broken, Planned, PlannedMpi, PlannedPackage, broken
from mvstack.model.constraint import Constraint, matches_version, mismatches, variant
from mvstack.model.gates import GateId, Gates
from mvstack.model.spack_lock import RUNTIME, Lock, Node

T = TypeVar("T")


def mpi_nodes(lock: Lock, planned: Planned, rules: Gates) -> dict[str, Node]:
    """Every MPI of the lock file by hash: known by name, or because somebody needs it as `mpi`."""
    names = {*rules.mpis.packages, *(mpi.wanted.name for mpi in planned.mpis)}
    asked = {
        edge.hash
        for node in lock.nodes.values()
        for edge in node.dependencies
        if "mpi" in edge.virtuals
    }
    return {
        node.hash: node for node in lock.nodes.values() if node.name in names or node.hash in asked
    }


def check_mpis_and_roots(lock: Lock, planned: Planned, rules: Gates) -> list[Broken]:
    """Gates roots, one-mpi, planned-mpi, device, pmi, process-manager, variant and transport."""
    mpis = mpi_nodes(lock, planned, rules)
    roots = lock.root_nodes()
    exact = frozenset(name for name, row in rules.mpi_variants.items() if row.exact)
    builds = _pair(
        planned.mpis,
        [root for root in roots if root.hash in mpis],
        lambda mpi, root: _distance(root, mpi.wanted, exact),
    )
    standing = {mpi.module: node for mpi, node in builds}
    found = [
        one
        for mpi, node in builds
        for one in (
            *_as_planned(rules, mpi, node, exact),
            *_transport(rules, lock, mpi, node),
            *_one_mpi(rules, lock, mpis, node, mpi.spec),
        )
    ]
    found += [_not_a_root(rules, lock, mpi) for mpi in planned.mpis if mpi.module not in standing]

    def distance(package: PlannedPackage, root: Node) -> int | None:
        own = _distance(root, package.wanted)
        over = standing.get(package.mpi)
        below = _below(lock, mpis, root)
        return None if own is None else 2 * own + (over is not None and over not in below)

    packages = _pair(planned.packages, [root for root in roots if root.hash not in mpis], distance)
    for package, node in packages:
        over, below = standing.get(package.mpi), _below(lock, mpis, node)
        found += _package(rules, planned, package, node, over, below)
    taken = [package for package, _ in packages]
    found += [
        _missing_package(rules, planned, package)
        for package in planned.packages
        if package not in taken
    ]
    known = {node.hash for _, node in (*builds, *packages)}
    found += [
        _unplanned(rules, planned, root)
        for root in roots
        if root.hash not in known and not _is_compiler(planned, root)
    ]
    return found


def _pair(
    wanted: Sequence[T], nodes: Sequence[Node], distance: Callable[[T, Node], int | None]
) -> list[tuple[T, Node]]:
    """Each of ``wanted`` with a node of its own, the closest pairs first; None is no pair."""
    scored = [
        (score, i, j)
        for i, one in enumerate(wanted)
        for j, node in enumerate(nodes)
        if (score := distance(one, node)) is not None
    ]
    left, free, pairs = set(range(len(wanted))), set(range(len(nodes))), []
    for _, i, j in sorted(scored):
        if i in left and j in free:
            left.discard(i)
            free.discard(j)
            pairs.append((i, j))
    return [(wanted[i], nodes[j]) for i, j in sorted(pairs)]


def _distance(node: Node, wanted: Constraint, exact: frozenset[str] = frozenset()) -> int | None:
    """How many fields differ; None for another package."""
    differs = mismatches(node, wanted, exact)
    return None if "name" in differs else len(differs)


def _as_planned(
    rules: Gates, mpi: PlannedMpi, node: Node, exact: frozenset[str]
) -> Iterable[Broken]:
    """The MPI's own version and variants."""
    for key in mismatches(node, mpi.wanted, exact):
        row = rules.mpi_variants.get(key)
        gate: GateId = row.gate if row else "variant"
        if key in ("version", "namespace"):
            gate = "planned-mpi"
        yield broken(rules, gate, str(node), _difference(node, mpi.wanted, key), mpi.spec)


def _difference(node: Node, wanted: Constraint, key: str) -> str:
    """How ``node`` differs in ``key``, both sides in Spack's words."""
    if key == "version":
        return f"@{node.version}, planned @{','.join(wanted.versions)}"
    if key == "namespace":
        return f"from {node.namespace or 'no namespace'}, planned from {wanted.namespace}"
    if key == "target":
        return f"target={node.target}, planned target={wanted.target}"
    have = node.variants.get(key)
    said = f"no variant {key}" if have is None else variant(key, have)
    return f"{said}, planned {variant(key, wanted.variants[key])}"


def _transport(rules: Gates, lock: Lock, mpi: PlannedMpi, node: Node) -> Iterable[Broken]:
    """The library beneath the device, the site's as well as ours."""
    wanted = mpi.transport
    if wanted is None:
        return
    there = [one for one in lock.closure([node], RUNTIME) if one.name == wanted.name]
    passes = f"{mpi.spec} ^{mpi.transport_spec}"
    if not there:
        yield broken(rules, "transport", str(node), f"no {wanted.name} below it", passes)
    for one in there:
        differs = mismatches(one, wanted)
        if differs:
            whose = (
                f", the site's below {one.external} as its file's externals say"
                if one.external
                else ""
            )
            said = "; ".join(_difference(one, wanted, key) for key in differs)
            yield broken(rules, "transport", str(node), f"{one}{whose}: {said}", passes)


def _below(lock: Lock, mpis: dict[str, Node], root: Node) -> list[Node]:
    """Every MPI that ``root`` needs, for whatever; itself not."""
    return [one for one in lock.closure([root]) if one.hash in mpis and one.hash != root.hash]


def _one_mpi(
    rules: Gates, lock: Lock, mpis: dict[str, Node], node: Node, passes: str
) -> Iterable[Broken]:
    """Another MPI below an MPI."""
    for other in _below(lock, mpis, node):
        yield broken(rules, "one-mpi", str(node), f"{other}, another MPI, below it", passes)


def _package(
    rules: Gates,
    planned: Planned,
    package: PlannedPackage,
    node: Node,
    over: Node | None,
    below: list[Node],
) -> Iterable[Broken]:
    build = planned.mpi(package.mpi)
    passes = f"{package.spec} ^{build.spec}" if build else package.spec
    for key in mismatches(node, package.wanted):
        yield broken(rules, "roots", str(node), _difference(node, package.wanted, key), passes)
    if not package.mpi and not below:
        return
    if len(below) != 1:
        said = " and ".join(sorted(map(str, below))) or "no MPI"
        yield broken(rules, "one-mpi", str(node), f"{said} below it", passes)
    for one in below:
        if over is None or one.hash != over.hash:
            should = f", planned {over or package.mpi}" if package.mpi else ", planned without MPI"
            yield broken(rules, "planned-mpi", str(node), f"over {one}{should}", passes)


def _not_a_root(rules: Gates, lock: Lock, mpi: PlannedMpi) -> Broken:
    there = [str(node) for node in lock.nodes.values() if node.name == mpi.wanted.name]
    said = f"not a root; below others: {', '.join(there)}" if there else "not in the lock file"
    return broken(rules, "roots", mpi.module, said, mpi.spec)


def _missing_package(rules: Gates, planned: Planned, package: PlannedPackage) -> Broken:
    build = planned.mpi(package.mpi)
    passes = f"{package.spec} ^{build.spec}" if build else package.spec
    over = f" over {package.mpi}" if package.mpi else ""
    return broken(rules, "roots", package.title + over, "no root of the lock file", passes)


def _unplanned(rules: Gates, planned: Planned, root: Node) -> Broken:
    same = [mpi.spec for mpi in planned.mpis if mpi.wanted.name == root.name]
    same += [package.spec for package in planned.packages if package.wanted.name == root.name]
    passes = same[0] if same else "the environment without it"
    return broken(rules, "roots", str(root), "a root that no plan asks for", passes)


def _is_compiler(planned: Planned, root: Node) -> bool:
    """Whether ``root`` is the partition's compiler, which is a root where Spack builds it."""
    return (
        planned.compiler_is_root
        and root.name == planned.compiler
        and matches_version(root.version, (planned.compiler_version,))
    )
