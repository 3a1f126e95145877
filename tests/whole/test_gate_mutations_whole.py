"""No lock that was solved for something else passes the gates, whatever the field that differs.

expanse/cpu is solved for. Then each field of each package is changed, one at a time, and the hashes
are made anew, so that the lock is as Spack would have written it, had it been asked for that. The
pinned Spack reads each, in one process, and the gates say what they say of its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import lock_mutations as mutations
import pytest
from lock_mutations import Mutation
from spack_here import spack_here

from mvstack.builders.spack import gates
from mvstack.builders.spack.environments import prepared
from mvstack.builders.spack.gates.planned import request
from mvstack.builders.spack.lock import Environment
from mvstack.builders.spack.runner import VERIFY
from mvstack.install import stages
from mvstack.model.gates import load_gates
from mvstack.model.load import load_system, parse_system
from mvstack.model.spack_lock import parse_lock
from mvstack.model.system import System
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput
from mvstack.support.progress import Progress

ASK = """
import importlib.util, json, sys
import spack.environment
spec = importlib.util.spec_from_file_location("verify", sys.argv[1])
verify = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verify)
made, known = verify.package_hash, {}
def package_hash(node):  # it is most of the time, and the same for most
    words = f"{node.fullname}@{node.version} {node.variants} {node.target}"
    if words not in known:
        known[words] = made(node)
    return known[words]
verify.package_hash = package_hash
plan = json.load(open(sys.argv[2]))
environment = spack.environment.active_environment()
with open(sys.argv[4], "w") as answers:
    for line in open(sys.argv[3]):
        try:
            environment._read_lockfile_dict(json.loads(line))
            said = verify.differences(environment, plan)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps(said), file=answers, flush=True)
"""
TWO_DEVICES = """
name: here
builder: spack
os: debian12
partitions:
  node: {cores: 2, memory_gb: 8, target: x86_64_v3, fabric: shm, launcher: hydra,
         compiler: {version: 12.2.0}, mpi: {product: mvapich}}
"""
DESCRIBED = re.compile(r"arch\.target\.(?!name)")
"""What says what a target is: it is the same for all packages, and is changed for two."""

EDGE = re.compile(r"dependencies\.\d+\.(hash|name|parameters\.deptypes)$")
"""Hashes and names are test_gate_mutations.py's; of_edges has types that there are."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


class Solved(NamedTuple):
    """A partition that was solved for: its environment, and the JSON of its lock."""

    environment: Environment
    plan: Plan
    data: dict[str, Any]

    def told(self, made: list[Mutation]) -> list[str]:
        """What the gates say of each lock; "" of one that passes."""
        place, spack = self.environment.file.parent, self.environment.spack
        asked, locks, answers = place / "plan.json", place / "locks.jsonl", place / "answers.jsonl"
        asked.write_text(json.dumps(request(self.plan, compiler=False)))
        locks.write_text("".join(json.dumps(one.data) + "\n" for one in made))
        (place / "ask.py").write_text(ASK)
        words = [str(place / "ask.py"), str(VERIFY), *map(str, (asked, locks, answers))]
        spack.run("mutations", "-e", str(place), "python", *words)
        said = [json.loads(line) for line in answers.open()]
        return [self.broken(one, rows) for one, rows in zip(made, said, strict=True)]

    def broken(self, one: Mutation, rows: Any) -> str:
        """All that the gates say of one lock, given what Spack does."""
        told = rows if isinstance(rows, str) else ""
        try:
            lock = parse_lock(json.dumps(one.data))
        except InvalidInput as error:
            return str(error)
        found = gates.check(lock, self.plan, load_gates(), [] if told else rows)
        return "\n".join(
            [f"{each.package}: {each.rule}: {each.found}" for each in found] + [told]
        ).strip()


def solve(system: System, partition: str, place: Path) -> Solved:
    root = spack_here(place / "state").clones.home.parents[1]
    plan = stages.plan_for(system, partition, None, None)
    stack = prepared(plan, root, place, Progress())[-1]
    stack.locked(Progress())
    return Solved(stack, plan, json.loads(stack.file.read_text()))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    return solve(load_system("expanse"), "cpu", tmp_path_factory.mktemp("expanse"))


def test_the_lock_itself_passes(solved: Solved) -> None:
    assert solved.told([Mutation("as it is", "", "", solved.data)]) == [""]
    assert mutations.rehashed(solved.data) == solved.data


def test_each_of_two_builds_of_one_mpi_is_held_to_what_it_was_planned_as(tmp_path: Path) -> None:
    """Over UCX and over libfabric: each was once held to both, and no such lock passed."""
    two = solve(parse_system(TWO_DEVICES, Path("here.yaml")), "node", tmp_path)
    assert len(two.plan.mpi) == 2
    one_device = json.loads(json.dumps(two.data).replace('"netmod": "ofi"', '"netmod": "ucx"'))
    passes, refused = two.told(
        [
            Mutation("as it is", "", "", two.data),
            Mutation("UCX twice", "mvapich", "netmod", mutations.rehashed(one_device)),
        ]
    )
    assert passes == ""
    assert "netmod" in refused


def test_what_once_passed_is_refused_by_the_gate_that_it_is_about(solved: Solved) -> None:
    """threads=single, +debug, -O0, another -march, an external elsewhere."""
    made, expected = zip(*mutations.of_issue(solved.data), strict=True)
    told = solved.told(list(made))
    assert len(told) == 22
    missed = [
        (one.title, gate, said)
        for one, gate, said in zip(made, expected, told, strict=True)
        if not re.search(rf"^{one.package}@.*: {gate}: ", said, re.M)
    ]
    assert missed == []


def solved_otherwise(data: dict[str, Any]) -> Iterator[Mutation]:
    """Each change of one field with the hashes that Spack gives to it."""
    for kind in (mutations.of_nodes, mutations.of_edges, mutations.of_roots):
        for one in kind(data):
            described = DESCRIBED.search(one.title) and one.package not in ("mvapich", "slurm")
            if not (described or EDGE.search(one.title) or one.title.endswith(" hash")):
                yield one._replace(data=mutations.rehashed(one.data))


def test_no_field_may_be_another(solved: Solved) -> None:
    made = list(solved_otherwise(solved.data))
    assert len({one.title for one in made}) == len(made) > 1000  # none hides another
    told = dict(zip([one.title for one in made], solved.told(made), strict=True))
    passed = [title for title, said in told.items() if not said]
    assert passed == []
    unnamed = [
        (one.title, told[one.title])
        for one in made
        if one.package not in told[one.title] or one.field not in told[one.title]
    ]
    assert unnamed == []
    print(f"{len(made)} locks, each refused")
