"""The lock files of both sides, where both have one. Reads files, no more."""

from __future__ import annotations

from pathlib import Path

from mvstack.diff.sides import Side
from mvstack.model.spack_lock import Lock, read_lock
from mvstack.support.errors import InvalidInput, Problem


def both_locks(
    old: Side, new: Side, partitions: list[str], old_folder: Path | None, new_folder: Path | None
) -> dict[str, tuple[Lock, Lock]]:
    """Old and new lock file of every partition for which there are both.

    They are looked for below the folder given (``<system>/<partition>/spack.lock``), else beside
    the committed environments of the side. Raises InvalidInput for a folder that is not there, and
    when folders are given for nothing.
    """
    given = [folder for folder in (old_folder, new_folder) if folder is not None]
    for folder in given:
        if not folder.is_dir():
            raise InvalidInput(Problem("there is no such folder", str(folder)))
    found: dict[str, tuple[Lock, Lock]] = {}
    for name in partitions:
        before, after = _file(old, name, old_folder), _file(new, name, new_folder)
        if before.is_file() and after.is_file():
            found[name] = (read_lock(before), read_lock(after))
    if given and partitions and not found:
        raise InvalidInput(
            Problem(
                "no partition that is compared has a lock file on both sides",
                ", ".join(map(str, given)),
                allowed=f"{given[0]}/{partitions[0]}/spack.lock and the like",
                todo="give --old-locks and --new-locks, each as `mvstack lock --to DIR` wrote it; "
                "without them plans are compared",
            )
        )
    return found


def _file(side: Side, partition: str, folder: Path | None) -> Path:
    if folder is not None:
        return folder / partition / "spack.lock"
    return side.tree / "environments" / "rendered" / partition / "spack" / "spack.lock"
