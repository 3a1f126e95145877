"""``mvstack lock``: concretize systems and hold the answer to the gates, on any machine."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mvstack.cli.options import Json, Profile, ReleaseName, Root, Systems, progress
from mvstack.plan.types import Extent, Plan
from mvstack.support.console import say
from mvstack.support.errors import InvalidInput, MvstackError, together
from mvstack.support.progress import Progress


@dataclass(frozen=True)
class Solved:
    """One environment: how many packages the solver's answer has, and how long it took."""

    name: str
    what: str
    packages: int
    built: int
    seconds: float


def lock(
    systems: Systems = None,
    release: ReleaseName = None,
    root: Root = None,
    to: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the lock files as DIR/SYSTEM/PARTITION/spack.lock."),
    ] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> None:
    """Concretize partitions with Spack and check the lock files. Builds nothing."""
    # start-up time: only this command needs it
    from mvstack.model.load import load_system, system_names

    names = systems or [name for name in system_names() if not load_system(name).discover]
    _before_solving(names, to)
    shown = progress(as_json)
    done: list[Solved] = []
    errors: list[MvstackError] = []
    for name in names:
        for result in locks(name, release, root, to, shown, profile or ""):
            if isinstance(result, MvstackError):
                errors.append(result)
            else:
                done.append(result)
    if not (as_json and errors):
        lines = (
            f"{one.name}: {one.what}: {one.packages} packages, {one.built} of them to build, "
            f"{one.seconds:.0f} s"
            for one in done
        )
        say([dict(one.__dict__) for one in done], as_json, *lines)
    if errors:
        raise together(errors, outcome="Nothing was installed.")


def _before_solving(names: list[str], to: Path | None) -> None:
    """Raise for unknown names and a folder that cannot be written: solving takes minutes."""
    # start-up time: only this command needs it
    from mvstack.install import stages

    errors: list[MvstackError] = []
    for name in names:
        try:
            stages.load(name)
        except MvstackError as error:
            errors.append(error)
    if to is not None:
        try:
            to.mkdir(parents=True, exist_ok=True)
            if not os.access(to, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            what = f"lock files cannot be kept there: {error.strerror}"
            todo = "name a folder that you may write to with --to"
            errors.append(InvalidInput(what, str(to), todo=todo))
    if errors:
        raise together(errors, outcome="Nothing was solved for.")


def locks(
    name: str,
    release: str | None,
    root: Path | None,
    to: Path | None,
    progress: Progress,
    profile: str = "",
) -> Iterator[Solved | MvstackError]:
    """Concretize each partition that ``name`` means; what is wrong with one stops no other."""
    # start-up time: only this command needs it
    from mvstack.install import stages

    system, partitions = stages.load(name)
    clones_in = root.absolute() if root else Path(stages.default_root())
    for partition in partitions:
        try:
            plan = stages.plan_for(system, partition, release, None, extent=Extent(profile))
            with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as folder:
                yield from _solved(plan, clones_in, Path(folder), to, progress)
        except MvstackError as error:
            yield error


def _solved(
    plan: Plan, root: Path, place: Path, to: Path | None, progress: Progress
) -> Iterator[Solved]:
    # start-up time: only this command needs it
    from mvstack.builders.spack import handed
    from mvstack.builders.spack.environments import solved

    name, began = f"{plan.system}/{plan.partition}", time.monotonic()
    target = to / plan.system / plan.partition if to else None
    for one, answer in solved(plan, root, place, progress):
        if target is not None:
            file = target / one.file.relative_to(place / "rendered" / "spack")
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(one.file, file)
        what = "compiler" if one.file.parent.name == "compiler" else "stack"
        seconds = round(time.monotonic() - began, 1)
        yield Solved(name, what, len(answer.nodes), answer.built(), seconds)
        began = time.monotonic()
    if target is not None:
        handed.note(plan, target)
