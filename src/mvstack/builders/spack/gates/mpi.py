"""The gates about roots and their MPI: what was planned is there, over the MPI it was planned over.

Pure. Planned builds and roots are paired first, the best fitting ones before the others, so that
an error says how a root differs from what it stands for.
"""

from collections.abc import Callable, Iterable, Sequence

from mvstack.builders.spack.gates.planned import Broken, Case, Wanted
from mvstack.model.constraint import Constraint, mismatches, parse, variant
from mvstack.model.gates import GateId
from mvstack.model.spack_lock import RUNTIME, Node


def mpi_hashes(case: Case) -> set[str]:
    """Every MPI of the lock file: known by name, or because somebody needs it as `mpi`."""
    names = {*case.rules.mpis.packages, *(mpi.spec.name for mpi in case.mpis)}
    nodes = case.lock.nodes.values()
    asked = {edge.hash for node in nodes for edge in node.dependencies if "mpi" in edge.virtuals}
    return asked | {node.hash for node in nodes if node.name in names}


Pairs = list[tuple[Wanted, Node]]


def paired(case: Case) -> tuple[Pairs, Pairs]:
    """The planned MPI builds and packages, each with the root that stands for it."""
    mpis, roots = mpi_hashes(case), case.lock.root_nodes()
    builds = _pair(
        case.mpis,
        [root for root in roots if root.hash in mpis],
        lambda mpi, root: _distance(root, mpi.spec, case.exact),
    )
    standing = {mpi.key: node for mpi, node in builds}

    def distance(package: Wanted, root: Node) -> int | None:
        own, over = _distance(root, package.spec), standing.get(package.mpi)
        apart = over is not None and over not in case.lock.closure([root])
        return None if own is None else 2 * own + apart

    return builds, _pair(case.packages, [one for one in roots if one.hash not in mpis], distance)


def check_mpis_and_roots(case: Case) -> list[Broken]:
    """Gates roots, one-mpi, planned-mpi, device, pmi, process-manager, variant and transport."""
    lock, mpis = case.lock, mpi_hashes(case)

    def below(root: Node) -> list[Node]:
        """Every MPI that ``root`` needs, for whatever; itself not."""
        return [one for one in lock.closure([root]) if one.hash in mpis - {root.hash}]

    builds, packages = paired(case)
    standing = {mpi.key: node for mpi, node in builds}
    found: list[Broken] = []
    for mpi, node in builds:
        found += _as_planned(case, mpi, node)
        found += _transport(case, mpi, node)
        found += [
            case.broken("one-mpi", node, f"{other}, another MPI, below it", mpi.passes)
            for other in below(node)
        ]
    for package, node in packages:
        found += _package(case, package, node, standing.get(package.mpi), below(node))
    pairs = [*builds, *packages]
    taken, known = [wanted for wanted, _ in pairs], {node.hash for _, node in pairs}
    found += [_missing(case, one) for one in (*case.mpis, *case.packages) if one not in taken]
    return found + [_unplanned(case, one) for one in lock.root_nodes() if one.hash not in known]


def _pair(
    wanted: Sequence[Wanted], nodes: Sequence[Node], distance: Callable[[Wanted, Node], int | None]
) -> Pairs:
    """Each of ``wanted`` with a node of its own, the closest pairs first; None is no pair."""
    scored = [
        (score, i, j)
        for i, one in enumerate(wanted)
        for j, node in enumerate(nodes)
        if (score := distance(one, node)) is not None
    ]
    pairs: dict[int, int] = {}
    for _, i, j in sorted(scored):
        if i not in pairs and j not in pairs.values():
            pairs[i] = j
    return [(wanted[i], nodes[j]) for i, j in sorted(pairs.items())]


def _distance(node: Node, wanted: Constraint, exact: frozenset[str] = frozenset()) -> int | None:
    """How many fields differ; None for another package."""
    differs = mismatches(node, wanted, exact)
    return None if "name" in differs else len(differs)


def _as_planned(case: Case, mpi: Wanted, node: Node) -> Iterable[Broken]:
    """The MPI's own version and variants."""
    for key in mismatches(node, mpi.spec, case.exact):
        row = case.rules.mpi_variants.get(key)
        gate: GateId = row.gate if row else "variant"
        if key in ("version", "namespace"):
            gate = "planned-mpi"
        yield case.broken(gate, node, _difference(node, mpi.spec, key), mpi.passes)


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


def _transport(case: Case, mpi: Wanted, node: Node) -> Iterable[Broken]:
    """The library beneath the device, the site's as well as ours."""
    if not mpi.transport:
        return
    wanted, passes = parse(mpi.transport), f"{mpi.passes} ^{mpi.transport}"
    there = [one for one in case.lock.closure([node], RUNTIME) if one.name == wanted.name]
    if not there:
        yield case.broken("transport", node, f"no {wanted.name} below it", passes)
    for one in there:
        if differs := mismatches(one, wanted):
            site = f", the site's below {one.external} as its file's externals say"
            said = "; ".join(_difference(one, wanted, key) for key in differs)
            found = f"{one}{site if one.external else ''}: {said}"
            yield case.broken("transport", node, found, passes)


def _package(
    case: Case, package: Wanted, node: Node, over: Node | None, below: list[Node]
) -> Iterable[Broken]:
    """A package, and the MPI beneath it: ``over`` is the planned one."""
    for key in mismatches(node, package.spec):
        yield case.broken("roots", node, _difference(node, package.spec, key), package.passes)
    if not package.mpi and not below:
        return
    if len(below) != 1:
        said = " and ".join(sorted(map(str, below))) or "no MPI"
        yield case.broken("one-mpi", node, f"{said} below it", package.passes)
    for one in below:
        if over is None or one.hash != over.hash:
            should = f", planned {over or package.mpi}" if package.mpi else ", planned without MPI"
            yield case.broken("planned-mpi", node, f"over {one}{should}", package.passes)


def _missing(case: Case, wanted: Wanted) -> Broken:
    roots = case.lock.root_nodes()
    there = [node for node in case.lock.nodes.values() if node.name == wanted.spec.name]
    said = "no root of the lock file"
    if there and not any(node in roots for node in there):
        said = f"not a root; below others: {', '.join(map(str, there))}"
    return case.broken("roots", wanted.title, said, wanted.passes)


def _unplanned(case: Case, root: Node) -> Broken:
    same = [one.passes for one in (*case.mpis, *case.packages) if one.spec.name == root.name]
    passes = same[0] if same else "the environment without it"
    return case.broken("roots", root, "a root that no plan asks for", passes)
