"""Debian's MPICH as an installed tree of `local`, for the commands that measure it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from checks_tree import LMOD, debian_plan


def measured(root: Path, **mpi: Any) -> dict[str, Any]:
    """The plan of a tree below ``root``, as ``mvstack install local --root`` leaves one."""
    tree = root / "2026.11" / "local"
    plan = debian_plan(tree) if LMOD.exists() else None
    if plan is None or not Path("/usr/bin/mpicc.openmpi").exists():
        pytest.skip("apt: lmod mpich libmpich-dev openmpi-bin libopenmpi-dev")
    plan["mpi"][0].update(mpi)
    plan |= {"root": str(root), "compiler": {}, "scheduler": "local"}
    for name, text in {
        "records/plan.json": json.dumps(plan),
        "init/bash": f"source {LMOD}\nmodule use {tree}/modules/Core\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return plan
