"""What builds left behind, here and in a cloud: found, and removed when asked to."""

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mvstack.image import base, store
from mvstack.image.clouds import Cloud
from mvstack.image.store import Version
from mvstack.support import locks
from mvstack.support.errors import Locked
from mvstack.support.progress import Progress


def clean_here(folder: Path, remove: bool, progress: Progress) -> list[dict[str, Any]]:
    """Versions that were never whole and that nobody works on, working folders, half base disks.

    A folder without a record that can be believed is left alone, and so are working folders that
    may belong to it.
    """
    rows = []
    for one in store.versions(folder):
        with contextlib.suppress(Locked), _held(one, remove):
            rows += _of_version(one, remove, progress)
    # in this order: a build that begins now writes its record before it makes its working folder
    working = sorted((folder / store.WORK).glob("*"))
    if not store.damaged(folder):
        owned = {store.work_folder(one) for one in store.versions(folder)}
        for place in working:
            if place not in owned and not locks.is_held(place / ".lock"):
                rows.append(_row("working folder", place, "of no version"))
    if not locks.is_held(folder / store.BASE / base.LOCK):
        for place in sorted((folder / store.BASE).glob(f"{base.HALF}*")):
            rows.append(_row("half base disk", place, "of no version"))
    for row in rows:
        if remove and (place := Path(row["id"])).exists():
            with progress.step("remove", f"{row['kind']} {place}"):
                shutil.rmtree(place)
    return rows


@contextlib.contextmanager
def _held(version: Version, remove: bool) -> Iterator[None]:
    """Held while it is removed; looked at alone otherwise, which writes nothing."""
    if remove:
        with store.locked(version):
            yield
        with contextlib.suppress(OSError):  # what the lock made, and nothing else was there
            work = store.work_folder(version)
            (work / ".lock").unlink()
            work.rmdir()
    elif not store.busy(version):
        yield
    else:
        raise Locked


def _of_version(one: Version, remove: bool, progress: Progress) -> list[dict[str, Any]]:
    work = store.work_folder(one)
    rows = []
    if one.state == "building":
        rows.append(_row("unfinished version", one.folder, one.title))
    if work.is_dir() and any(path.name != ".lock" for path in work.iterdir()):
        rows.append(_row("working folder", work, one.title))
    if remove:
        for row in rows:
            with progress.step("remove", f"{row['kind']} of {one.title}"):
                shutil.rmtree(row["id"])
    return rows


def _row(kind: str, place: Path, image: str) -> dict[str, Any]:
    size = sum(path.lstat().st_blocks * 512 for path in place.rglob("*"))
    return {"kind": kind, "id": str(place), "image": image, "bytes": size}


def clean_cloud(
    asked: Cloud, folder: Path, remove: bool, older: float, progress: Progress
) -> list[dict[str, Any]]:
    """What carries our tags and is no image, of builds that began over ``older`` hours ago.

    One that goes on here is left alone; one on another machine cannot be seen from here.
    """
    running = {one.data["build_id"] for one in store.versions(folder) if store.busy(one)}
    rows = []
    for leftover in asked.leftovers():
        if leftover.build in running or _age(leftover.created) < older:
            continue
        rows.append(dict(leftover.__dict__))
        if remove:
            with progress.step("remove", f"{leftover.kind} {leftover.id}"):
                asked.remove(leftover)
    return rows


def _age(created: str) -> float:
    """Hours since then; none where the cloud does not say when it was made."""
    if not created:
        return 0
    then = datetime.fromisoformat(created)
    return (datetime.now(UTC) - then).total_seconds() / 3600
