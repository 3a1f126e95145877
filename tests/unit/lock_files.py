"""Lock files for the tests of the gates: real ones of Spack 1.1.0, and plans that go with them.

tests/data/locks/<name>.lock is what Spack made of <name>.yaml beside it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from lock_mutations import rehashed

from mvstack.model.spack_lock import Lock, parse_lock

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
    """A lock file from JSON that a test changed, with the hashes that Spack would give it."""
    return parse_lock(json.dumps(rehashed(data)))


def together(*all_data: dict[str, Any]) -> dict[str, Any]:
    """Several lock files as one environment, with all their roots; content as it is."""
    kept = copy.deepcopy(all_data[0])
    for data in all_data[1:]:
        kept["roots"] += data["roots"]
        kept["concrete_specs"].update(copy.deepcopy(data["concrete_specs"]))
    return kept


def plan(**changes: Any) -> dict[str, Any]:
    """The plan that good.lock answers to: one MVAPICH over UCX, and HPCC over it."""
    made = {
        "system": "cluster",
        "partition": "cpu",
        "os": "debian12",
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
