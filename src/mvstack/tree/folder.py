"""The folder of one tree before anything is installed into it: its room, its group."""

from __future__ import annotations

import shutil
from pathlib import Path

from mvstack.support.errors import Missing


def own(tree: Path, group: str | None) -> None:
    """Make the folder of a tree, given to ``group``. Raises Missing when there is no such group."""
    tree.mkdir(parents=True, exist_ok=True)
    if group:
        try:
            shutil.chown(tree, group=group)
            tree.chmod(tree.stat().st_mode | 0o2000)
        except (LookupError, PermissionError) as error:
            raise Missing(
                f"the tree cannot be given to group {group}: {error}",
                str(tree),
                todo="correct install.group in the system's file",
            ) from None


def enough_room(root: Path, gigabytes: float) -> None:
    """Raise Missing when less than that is free below ``root``."""
    free = shutil.disk_usage(root).free / 1e9
    if free < gigabytes:
        raise Missing(
            f"{free:.1f} GB are free and an installation needs about {gigabytes} GB",
            str(root),
            todo="make room, or give another --root",
        )
