"""The gates: is what the solver answered what was planned? Pure.

The solver satisfies every requirement it was given. Whether the requirements said what the plan
means, and whether a default, a reuse or an external got in between them, is asked here: of every
package below, of roots and their MPI in mpi.py. What only recipes tell, spack-repo/verify.py has
found out inside Spack.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import cast

from mvstack.builders.spack.gates.mpi import check_mpis_and_roots
from mvstack.builders.spack.gates.planned import Broken, Case
from mvstack.model.constraint import parse, satisfies, sort_key
from mvstack.model.gates import GATES, GateId, Gates, Unique
from mvstack.model.spack import spack_pins
from mvstack.model.spack_lock import RUNTIME, Lock, Node
from mvstack.plan.types import Plan


def check(
    lock: Lock,
    plan: Plan,
    rules: Gates,
    differences: Iterable[Mapping[str, str]] = (),
) -> list[Broken]:
    """Every gate that ``lock`` does not pass, in the order of the gates; [] when it passes all.

    ``differences`` are those that spack-repo/verify.py found.
    """
    case = Case(lock, plan, rules)
    found = [
        *check_mpis_and_roots(case),
        *check_solver(case),
        *check_hash(case),
        *check_unique(case),
        *check_known_bad(case),
        *check_differences(case, differences),
    ]
    return sorted(found, key=lambda one: (GATES.index(one.rule), one.package, one.found))


def check_solver(case: Case) -> Iterable[Broken]:
    """Gate solver; a release that is no clone does not say its commit."""
    pin = spack_pins().spack
    version = pin.tag.removeprefix("v")
    if case.lock.spack not in (version, f"{version} {pin.commit}"):
        said = f"solved by Spack {case.lock.spack or 'of no version'}, planned {version}"
        yield case.broken("solver", case.lock.file, said, f"a lock of Spack {version} {pin.commit}")


def check_hash(case: Case) -> Iterable[Broken]:
    """Gate hash."""
    needed = {node.hash for node in case.lock.closure(case.lock.root_nodes())}
    for node in case.lock.nodes.values():
        if node.digest != node.hash:
            said = f"its fields make the hash {node.digest or 'of another name'}, not {node.hash}"
            yield case.broken("hash", node, said, f"{node.name}@={node.version} as Spack wrote it")
        elif node.hash not in needed:
            yield case.broken("hash", node, "no root needs it", "the lock without it")


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
        same = [node for node in nodes if node.name == name]
        same.sort(key=lambda node: (sort_key(node.version), node.hash), reverse=True)
        if len(same) > 1:
            said = f"{len(same)} builds: {', '.join(map(str, same))}"
            passes = f"{name}@={same[0].version} for all"
            package = f"{name} within {where}"
            yield Broken(package, "unique", said, row.why, row.source, passes)


def check_known_bad(case: Case) -> Iterable[Broken]:
    """Gate known-bad: the site's packages as well as ours."""
    for row in case.rules.known_bad:
        wanted = parse(row.spec)
        for node in case.lock.nodes.values():
            if node.name == wanted.name and satisfies(case.lock, node, wanted):
                told = (row.spec, row.why, row.source, row.instead, row.id)
                yield Broken(str(node), "known-bad", *told)


def check_differences(case: Case, differences: Iterable[Mapping[str, str]]) -> Iterable[Broken]:
    """The gates that Spack was asked for."""
    for one in differences:
        node, gate = case.lock.nodes[one["hash"]], cast(GateId, one["gate"])
        said = "{field} {found}, planned {planned}".format(**one)
        passes = f"{node.name}@={node.version} with {one['field']} {one['planned']}"
        yield case.broken(gate, node, said, passes)
