"""The invariants of docs/policy.md hold for every machine, and a changed policy breaks them.

Here every so-many-th machine is asked; tests/whole/test_choice_whole.py asks them all.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mvstack.model.load import load_policy
from mvstack.model.policy import Policy
from mvstack.model.rules import Setting

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from choice_space import CHECKS, DOCS, machines, violations

POLICY = load_policy()
EVERY = 127
"""A prime, so that with each value of one thing every value of another comes along."""

PLAIN = list(machines(plain=True))
random.Random(1).shuffle(PLAIN)  # so that no change has to wait for its fabric's turn


def test_every_invariant_stands_on_the_page_with_its_reason() -> None:
    part = DOCS.read_text().partition("## What holds for every choice")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (.+) \|$", part, re.M)
    assert {name for name, _, _ in rows} == set(CHECKS)


def test_they_hold() -> None:
    found = violations(POLICY, machines(EVERY))
    assert next(found, "") == ""


def libfabric(name: str, **changes: Any) -> Policy:
    """The policy with another libfabric beneath one fabric."""
    row = POLICY.fabrics[name]
    assert row.libfabric
    other = row.model_copy(update={"libfabric": row.libfabric.model_copy(update=changes)})
    return POLICY.model_copy(update={"fabrics": {**POLICY.fabrics, name: other}})


def ucx(name: str, **changes: Any) -> Policy:
    """The policy with another UCX beneath one fabric."""
    row = POLICY.fabrics[name]
    assert row.ucx
    other = row.model_copy(update={"ucx": row.ucx.model_copy(update=changes)})
    return POLICY.model_copy(update={"fabrics": {**POLICY.fabrics, name: other}})


def gpu(name: str, **changes: Any) -> Policy:
    """The policy with another row of one kind of GPU."""
    other = POLICY.gpus[name].model_copy(update=changes)
    return POLICY.model_copy(update={"gpus": {**POLICY.gpus, name: other}})


def gpu_ucx(name: str, **changes: Any) -> Policy:
    """The policy with another UCX for one kind of GPU."""
    under = POLICY.gpus[name].ucx
    assert under
    return gpu(name, ucx=under.model_copy(update=changes))


def build(name: str, **changes: Any) -> Policy:
    """The policy with another row of builds.yaml; what is of `use` goes there."""
    rows = []
    for row in POLICY.builds:
        if row.id == name:
            inner = {key: changes[key] for key in changes if key in type(row.use).model_fields}
            outer = {key: changes[key] for key in changes if key not in inner}
            row = row.model_copy(update={**outer, "use": row.use.model_copy(update=inner)})
        rows.append(row)
    assert rows != POLICY.builds
    return POLICY.model_copy(update={"builds": rows})


def launcher(name: str, **changes: Any) -> Policy:
    """The policy with another row of launchers.yaml."""
    rows = [r.model_copy(update=changes) if r.id == name else r for r in POLICY.launchers]
    assert rows != POLICY.launchers
    return POLICY.model_copy(update={"launchers": rows})


def without(*names: str, of: Policy = POLICY) -> Policy:
    """The policy without these refusals."""
    rows = [row for row in of.refusals if row.id not in names]
    assert len(rows) == len(of.refusals) - len(names)
    return of.model_copy(update={"refusals": rows})


def when(name: str, **changes: Any) -> Any:
    """The condition of a row of builds.yaml, changed."""
    row = next(row for row in POLICY.builds if row.id == name)
    return row.when.model_copy(update=changes)


def believe(name: str, **changes: Any) -> Any:
    row = next(row for row in POLICY.builds if row.id == name)
    return row.believe.model_copy(update=changes)


def setting(value: str) -> Setting:
    return Setting(value=value, why="a mutation", source="a test")


RC = ["rc_mlx5", "dc_mlx5"]
MUTATIONS: dict[str, Callable[[], Policy]] = {
    "Slingshot by tcp": lambda: libfabric("slingshot-11", provider="tcp"),
    "EFA by cxi": lambda: libfabric("efa", provider="cxi"),
    "Omni-Path by psm3": lambda: libfabric("omni-path", provider="psm3"),
    "psm3 by sockets": lambda: libfabric("psm3", provider="sockets"),
    "TCP by sockets": lambda: libfabric("tcp", provider="sockets"),
    "one machine by sockets": lambda: libfabric("shm", provider="sockets"),
    "libfabric without cxi": lambda: libfabric("slingshot-11", fabrics=["shm", "tcp"]),
    "libfabric without efa": lambda: libfabric("efa", fabrics=["verbs", "shm", "tcp"]),
    "cxi left out on one node": lambda: libfabric("slingshot-11", environment={}),
    "UCX free to take TCP": lambda: ucx("infiniband", environment={}),
    "UCX told all": lambda: ucx("roce", environment={"UCX_TLS": setting("all")}),
    "UCX on one machine free": lambda: ucx("shm", environment={}),
    "TCP believed on InfiniBand": lambda: ucx("infiniband", believe=[*RC, "tcp"]),
    "memory believed on InfiniBand": lambda: ucx("infiniband", believe=[*RC, "posix"]),
    "a GPU believed as the fabric": lambda: ucx("roce", believe=[*RC, "cuda_copy"]),
    "nothing asked on InfiniBand": lambda: ucx("infiniband", believe=[]),
    "TCP believed on one machine": lambda: ucx("shm", believe=["posix", "tcp"]),
    "UCX built without rc": lambda: ucx("infiniband", variants="+verbs +ud +mlx5_dv"),
    "the fabric believed as a GPU": lambda: gpu_ucx("nvidia", believe=["cuda_copy", "rc_mlx5"]),
    "another GPU believed": lambda: gpu_ucx("amd", believe=["cuda_copy"]),
    "no GPU asked of a run": lambda: gpu("intel", ucx=None),
    "UCX without CUDA": lambda: gpu_ucx("nvidia", variants=""),
    "UCX without ROCm": lambda: gpu_ucx("amd", variants=""),
    "libfabric without CUDA": lambda: gpu("nvidia", libfabric=""),
    "libfabric without ROCm": lambda: gpu("amd", libfabric=""),
    "libfabric without the architecture": lambda: gpu("amd", libfabric="+rocm"),
    "AMD without an architecture": lambda: gpu("amd", needs_arch=False),
    "AMD's architecture unsaid": lambda: gpu("amd-mi300a", arch_variant=None),
    "GPUs forgotten in a source build": lambda: build("nvidia-infiniband-source", configure={}),
    "HMEM forgotten": lambda: build("nvidia-ofi-source", environment={}),
    "HMEM forgotten for AMD": lambda: build("amd-source-ofi", environment={}),
    "MV2_USE_CUDA forgotten": lambda: build("nvidia-mrail", environment={}),
    "a row's own provider": lambda: build(
        "nvidia-efa-plus", environment={"FI_PROVIDER": setting("cxi")}
    ),
    "the embedded provider forgotten": lambda: build("infiniband-embedded", environment={}),
    "a row's believe widened": lambda: build(
        "infiniband-embedded", believe=believe("infiniband-embedded", providers=["mverbs", "tcp"])
    ),
    "mrail on Slingshot 11": lambda: without(
        "mvapich2-fabrics",
        of=build("infiniband-mrail", when=when("infiniband-mrail", fabric=["slingshot-11"])),
    ),
    "PSM2 on InfiniBand": lambda: build("omni-path-psm2", when=when("infiniband-mrail")),
    "srun by the library's own PMI": lambda: without(
        "srun-simple", of=launcher("srun-mvapich", pmi=["simple", "pmi2"])
    ),
    "srun by a plugin that Slurm has not": lambda: launcher(
        "srun-mvapich2", launch="srun --mpi=pmi1 -n {ranks} {program}"
    ),
    "plain srun by such a plugin": lambda: launcher(
        "srun-mvapich2", environment={"SLURM_MPI_TYPE": setting("pmi1")}
    ),
    "hydra's line by srun": lambda: launcher("hydra", launch="srun -n {ranks} {program}"),
    "Slurm's plugins not asked": lambda: POLICY.model_copy(
        update={
            "pmis": {**POLICY.pmis, "pmi2": POLICY.pmis["pmi2"].model_copy(update={"plugins": []})}
        }
    ),
    "Plus on any system": lambda: without("plus-os"),
    "Plus on any processor": lambda: without("plus-arch"),
    "TCP in silence": lambda: POLICY.model_copy(
        update={
            "fabrics": {
                **POLICY.fabrics,
                "tcp": POLICY.fabrics["tcp"].model_copy(update={"loud": ""}),
            }
        }
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_changed_policy_breaks_them(name: str) -> None:
    assert next(violations(MUTATIONS[name](), PLAIN), ""), name
