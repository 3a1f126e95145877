"""Spack itself, once for all jobs of a runner's user: a job's own root is gone after it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mvstack.builders.spack.clone import home
from mvstack.builders.spack.pins import load_pins
from mvstack.plan.types import Plan


def shared(plan: Plan) -> None:
    """Link the pinned Spack below the root of ``plan`` to one that jobs share.

    It lies where ci/get.sh keeps clones of mvapich-stack (MVSTACK_CLONES), apart for protected
    pipelines, and is cloned there by whoever needs it first. A root that has one keeps it.
    """
    if plan.builder != "spack":
        return
    own = home(Path(plan.root), load_pins())
    kind = "protected" if os.environ.get("CI_COMMIT_REF_PROTECTED") == "true" else "open"
    default = Path.home() / ".cache" / "mvapich-stack"
    folder = Path(os.environ.get("MVSTACK_CLONES") or default).absolute() / kind / "spack"
    (folder / own.name).mkdir(parents=True, exist_ok=True)
    own.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        own.symlink_to(folder / own.name)
