"""No change of one field of a good lock file passes the gates, whatever the field.

Here a lock was edited and its hashes left as they were. What is refused of a lock that is whole and
was solved for something else is in tests/whole/test_gate_mutations_whole.py.
"""

from __future__ import annotations

import json

import lock_files as locks
import lock_mutations as mutations
import pytest

from mvstack.builders.spack import gates
from mvstack.model.gates import load_gates
from mvstack.model.spack_lock import parse_lock
from mvstack.plan.types import plan_of
from mvstack.support.errors import InvalidInput

GOOD, RULES, PLAN = locks.raw("good"), load_gates(), plan_of(locks.plan())


def refused(mutation: mutations.Mutation) -> str:
    """What is said of a lock; "" when it passes."""
    try:
        broken = gates.check(parse_lock(json.dumps(mutation.data)), PLAN, RULES)
    except InvalidInput as error:
        return str(error)
    return "\n".join(f"{one.package}: {one.rule}: {one.found}" for one in broken)


def test_spacks_own_hashes_are_what_we_make_of_its_nodes() -> None:
    for name in ("good", "two-devices", "merged-devices", "bad-builtin", "bad-mpich"):
        data = locks.raw(name)
        assert mutations.rehashed(data) == data
    assert refused(mutations.Mutation("", "", "", GOOD)) == ""


@pytest.mark.parametrize("kind", ["of_nodes", "of_edges", "of_the_graph", "of_the_file"])
def test_no_field_can_be_edited(kind: str) -> None:
    made = list(getattr(mutations, kind)(GOOD))
    told = {mutation.title: refused(mutation) for mutation in made}
    assert len(told) == len(made) > 2, "two mutations of one name, or none"
    assert [title for title, said in told.items() if not said] == FREE.get(kind, [])
    unnamed = [one.title for one in made if told[one.title] and one.package not in told[one.title]]
    assert not unnamed
    print(f"{len(made)} changes, each refused")


FREE = {"of_nodes": []}
# What no hash holds: Spack gives an external its namespace after it has hashed it. The whole test
# has it refused by the gate `recipe`.
FREE["of_nodes"] = [
    f"{node['name']} namespace" for node in GOOD["concrete_specs"].values() if "external" in node
]
