"""The gates: is what the solver answered what was planned? Pure.

The solver satisfies every requirement it was given. Whether the requirements said what the plan
means, and whether a default, a reuse or an external got in between them, is asked here.
"""

from collections.abc import Mapping

from mvstack.builders.spack.gates.deprecated import Standing
from mvstack.builders.spack.gates.mpi import check_mpis_and_roots
from mvstack.builders.spack.gates.nodes import (
    check_compiler,
    check_deprecated,
    check_known_bad,
    check_target,
    check_unique,
)
from mvstack.builders.spack.gates.planned import Broken, Case
from mvstack.model.gates import GATES, Gates
from mvstack.model.spack_lock import Lock
from mvstack.plan.types import Plan


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
        *check_target(case),
        *check_compiler(case),
        *check_unique(case),
        *check_known_bad(case),
        *check_deprecated(case, deprecated or {}),
    ]
    return sorted(found, key=lambda one: (GATES.index(one.rule), one.package, one.found))
