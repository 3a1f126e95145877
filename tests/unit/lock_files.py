"""Lock files for the tests of the gates: real ones of Spack 1.1.0, and plans that go with them.

tests/data/locks/<name>.lock is what Spack made of <name>.yaml beside it; `only` keeps some roots
and all that they need, as they are.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from mvstack.lock.lockfile import Lock, parse_lock

DATA = Path(__file__).parent.parent / "data" / "locks"
MPI = (
    "mvapich@=4.1 netmod:=ucx fabrics:=infiniband pmi=pmi2 process_managers:=slurm "
    "file_systems:=nfs,ufs +omb"
)
UCX = "ucx +verbs +rc +dc +ud +mlx5_dv +rdmacm +cma +thread_multiple"


def raw(name: str) -> dict[str, Any]:
    """The JSON of a lock file, to be changed by a test."""
    return json.loads((DATA / f"{name}.lock").read_text())


def lock(data: dict[str, Any]) -> Lock:
    """A lock file from JSON that a test changed."""
    return parse_lock(json.dumps(data))


def only(data: dict[str, Any], *words: str) -> dict[str, Any]:
    """The roots whose spec holds one of ``words``, and what they need, content as it is."""
    kept = copy.deepcopy(data)
    kept["roots"] = [r for r in data["roots"] if any(word in r["spec"] for word in words)]
    assert len(kept["roots"]) == len(words), [root["spec"] for root in data["roots"]]
    todo, seen = [root["hash"] for root in kept["roots"]], set()
    while todo:
        hash_ = todo.pop()
        if hash_ not in seen:
            seen.add(hash_)
            todo += [e["hash"] for e in data["concrete_specs"][hash_].get("dependencies", [])]
    kept["concrete_specs"] = {key: data["concrete_specs"][key] for key in seen}
    return kept


def plan(**changes: Any) -> dict[str, Any]:
    """The plan that good.lock answers to: one MVAPICH over UCX, and HPCC over it."""
    made = {
        "system": "cluster",
        "partition": "cpu",
        "target": "zen2",
        "compiler": {"name": "gcc", "version": "12.2.0", "origin": "system"},
        "mpi": [
            {
                "module": "mvapich/4.1-ucx",
                "spack": {
                    "package": "mvapich",
                    "spec": MPI,
                    "transport": {"package": "ucx", "spec": UCX},
                },
            }
        ],
        "packages": [
            {"name": "HPCC", "version": "1.5.0", "spack": "hpcc@=1.5.0", "mpi": "mvapich/4.1-ucx"}
        ],
    }
    return {**made, **changes}


def plan_of_mpi_alone(spec: str = MPI, transport: str = UCX) -> dict[str, Any]:
    """A plan of one MPI and nothing over it."""
    made = plan(packages=[])
    made["mpi"][0]["spack"] = {
        "package": spec.partition("@")[0],
        "spec": spec,
        "transport": {"package": transport.partition(" ")[0], "spec": transport}
        if transport
        else None,
    }
    return made


def node(data: dict[str, Any], name: str) -> dict[str, Any]:
    """The one package of that name, to be changed by a test."""
    (found,) = [one for one in data["concrete_specs"].values() if one["name"] == name]
    return found
