"""Every path of a file tree, read without following a link and without leaving the tree."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.support.errors import Missing

CAPABILITY = "security.capability"


@dataclass(frozen=True)
class Node:
    """One path of a tree: absolute within it (``/etc/passwd``), where it is here, and its state."""

    path: str
    here: str
    status: os.stat_result

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.status.st_mode)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)

    def read(self, limit: int = -1) -> bytes:
        """The first ``limit`` bytes of a file, all of them below zero. Raises Missing."""
        try:
            with open(self.here, "rb") as stream:  # noqa: PTH123 - its path may not be text
                return stream.read(limit)
        except OSError as error:
            raise unreadable(self.path, error) from None

    def attributes(self) -> dict[str, bytes]:
        """Its extended attributes; none where the file system has none."""
        try:
            names = os.listxattr(self.here, follow_symlinks=False)
            return {
                name: os.getxattr(self.here, name, follow_symlinks=False) for name in sorted(names)
            }
        except OSError:
            return {}


def walk(root: Path) -> Iterator[Node]:
    """Every path below ``root`` and ``/`` itself, a folder before what is in it, else unordered.

    Raises Missing for a root that is not there and for a folder that cannot be read.
    """
    top = os.fspath(root)
    try:
        yield Node("/", top, os.lstat(top))
    except OSError as error:
        raise unreadable(top, error) from None
    pending = [(top, "")]
    while pending:
        here, path = pending.pop()
        try:
            with os.scandir(here) as entries:
                found = [
                    (entry.name, entry.path, entry.stat(follow_symlinks=False)) for entry in entries
                ]
        except OSError as error:
            raise unreadable(path or "/", error) from None
        for name, place, status in found:
            yield Node(f"{path}/{name}", place, status)
            if stat.S_ISDIR(status.st_mode):
                pending.append((place, f"{path}/{name}"))


def inside(root: Path, path: str) -> Path | None:
    """Where ``path`` of the tree is here, its links followed as the image would; None for none.

    An absolute link leads to the tree's own ``/``, never to that of this machine.
    """
    parts = [part for part in path.split("/") if part]
    done: list[str] = []
    for _ in range(400):  # links that lead in a circle end here
        if not parts:
            place = root.joinpath(*done)
            return place if os.path.lexists(place) else None
        part = parts.pop(0)
        if part == "..":
            done = done[:-1]
        elif part != ".":
            place = root.joinpath(*done, part)
            if place.is_symlink():
                target = os.readlink(place)  # noqa: PTH115 - it may not be text
                done = [] if target.startswith("/") else done
                parts = [one for one in target.split("/") if one] + parts
            else:
                done.append(part)
    return None


def unreadable(path: str, error: OSError) -> Missing:
    """What to raise for a path of an image that this user cannot read."""
    return Missing(
        f"cannot be read: {error.strerror or error}",
        path,
        because="a list of an image with gaps would say that nothing is there",
        todo="read the image's file tree as root",
    )
