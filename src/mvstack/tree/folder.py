"""The folder of one tree: one installation at a time, enough room, the group it belongs to."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from mvstack.plan.types import Plan
from mvstack.support import locks
from mvstack.support.errors import Locked, Missing, telling
from mvstack.support.processes import end_marked
from mvstack.tree.records import in_place


def _own(tree: Path, group: str | None) -> None:
    """Make the folder of a tree, given to ``group``. Raises Missing when there is no such group."""
    tree.mkdir(parents=True, exist_ok=True)
    if group and not _is_of(tree, group):
        try:
            shutil.chown(tree, group=group)
            tree.chmod(tree.stat().st_mode | stat.S_ISGID)
        except (LookupError, PermissionError) as error:
            raise Missing(
                f"the tree cannot be given to group {group}: {error}",
                str(tree),
                todo="correct install.group in the system's file",
            ) from None


def _is_of(tree: Path, group: str) -> bool:
    """Whether ``tree`` is given to ``group`` already: only its owner may do that once more."""
    with contextlib.suppress(KeyError):  # its group has no name here
        return tree.group() == group and bool(tree.stat().st_mode & stat.S_ISGID)
    return False


def _enough_room(root: Path, gigabytes: float) -> None:
    """Raise Missing when less than that is free below ``root``."""
    free = shutil.disk_usage(root).free / 1e9
    if free < gigabytes:
        raise Missing(
            f"{free:.1f} GB are free and an installation needs about {gigabytes} GB",
            str(root),
            todo="make room, or give another --root",
        )


# In the environment of every build process, so that a later run knows it as ours.
MARK = "MVSTACK_BUILDS_IN"


def writable(what: str, folder: Path) -> contextlib.AbstractContextManager[None]:
    """Raise Missing for an OSError of the block, with ``what`` cannot be done in ``folder``."""
    todo = "make room, name another folder (--root; of results --to), or run as its owner"
    return telling(Missing, what, where=str(folder), todo=todo)


@contextlib.contextmanager
def locked(root: Path, reading: bool = False) -> Iterator[None]:
    """Hold the lock of ``root`` while the block runs; ``reading`` keeps others from holding it.

    Raises Locked, saying who holds it, and Missing when the root cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        try:
            with writable("the install root cannot be written to", root):
                file = root / ".lock"
                stack.enter_context(locks.share(file) if reading else locks.hold(file, wait=False))
        except locks.Held as held:
            raise Locked(
                "another process is installing into this root",
                str(root),
                found=held.holder
                or "unknown; `mvstack cache push`, which reads from here, leaves no name",
                todo="wait until it has ended, or give another --root",
            ) from None
        yield


def end_leftovers(tree: Path) -> int:
    """End build processes of a killed run that still write into ``tree``; how many there were."""
    return end_marked(MARK, tree)


@contextlib.contextmanager
def installing(plan: Plan, umask: str, group: str | None, gigabytes: float) -> Iterator[None]:
    """Hold the root of ``plan`` for one installation: its tree is there, and nobody writes to it.

    Raises Locked, Refused for a tree that was moved here, and Missing for a root that cannot be
    written to, too little room, and a group that the tree cannot be given to.
    """
    root, tree = Path(plan.root), Path(plan.tree)
    os.umask(int(umask, 8))
    with locked(root):
        end_leftovers(tree)
        _enough_room(root, gigabytes)
        with contextlib.suppress(OSError, ValueError):  # there may be no plan yet
            in_place(tree)
        _own(tree, group)
        yield
