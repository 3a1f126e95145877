"""Debian's MPICH as an installed tree of `local`, for the commands that measure it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from checks_tree import LMOD, debian_plan, mpi_here


def measured(root: Path, **mpi: Any) -> dict[str, Any]:
    """The plan of a tree below ``root``, as ``mvstack install local --root`` leaves one."""
    tree = root / "2026.11" / "local"
    plan = debian_plan(tree) if LMOD.exists() else None
    if plan is None or not Path("/usr/bin/mpicc.openmpi").exists():
        pytest.skip("apt: lmod mpich libmpich-dev openmpi-bin libopenmpi-dev")
    plan["mpi"][0].update(mpi)
    return kept(plan, root, tree)


def installed(root: Path) -> dict[str, Any]:
    """The plan of a copy of an installed MVAPICH's modules below ``root``, over its programs."""
    plan = mpi_here(root)
    if plan["mpi"][0]["product"] != "mvapich":
        pytest.skip("MVSTACK_TEST_ROOT names no tree with MVAPICH")
    tree = root / "2026.11" / "local"
    shutil.copytree(f"{plan['tree']}/modules", tree / "modules", symlinks=True)
    for path in tree.glob("modules/**/*.lua"):
        text = path.read_text().replace(f"{plan['tree']}/modules", f"{tree}/modules")
        path.write_text(text)
    return kept(plan | {"tree": str(tree), "system": "local", "partition": "node"}, root, tree)


def kept(plan: dict[str, Any], root: Path, tree: Path) -> dict[str, Any]:
    """``plan``, written as that of ``tree``."""
    plan |= {"root": str(root), "compiler": {}, "scheduler": "local"}
    for name, text in {
        "records/plan.json": json.dumps(plan),
        "init/bash": f"source {LMOD}\nmodule use {tree}/modules/Core\n",
    }.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return plan
