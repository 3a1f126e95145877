"""``mvstack lock``: concretize systems and hold the answer to the gates, on any machine."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mvstack.support.errors import InvalidInput, MvstackError, Problem, together


@dataclass(frozen=True)
class Solved:
    """One environment: how many packages the solver's answer has, and how long it took."""

    name: str
    what: str
    packages: int
    built: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return dict(self.__dict__)


def lock(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SYSTEM[/PARTITION]|FILE…", help="What to concretize; every system if none."
        ),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", help="A release; else newest.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", help="Where Spack is cloned to (else MVSTACK_ROOT, the default)."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(help="Keep DIR/SYSTEM/PARTITION/spack.lock, and of what.", metavar="DIR"),
    ] = None,
    profile: Annotated[
        Literal["default", "small", "full"] | None,
        typer.Option(help="How much of the release; else what the partition's file says."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Concretize partitions with Spack and check the lock files; nothing is built or installed."""
    import json

    from mvstack.model.load import load_system, system_names
    from mvstack.support.progress import Progress

    names = systems or [name for name in system_names() if not load_system(name).discover]
    _before_solving(names, to)
    progress = Progress(0, mode="quiet" if as_json else "auto")
    done: list[Solved] = []
    errors: list[MvstackError] = []
    for name in names:
        for result in locks(name, release, root, to, progress, profile or ""):
            if isinstance(result, MvstackError):
                errors.append(result)
            else:
                done.append(result)
    if as_json and not errors:
        typer.echo(json.dumps([one.as_dict() for one in done], indent=2))
    elif not as_json:
        for one in done:
            typer.echo(
                f"{one.name}: {one.what}: {one.packages} packages, {one.built} of them to build, "
                f"{one.seconds:.0f} s"
            )
    if errors:
        raise together(errors, outcome="Nothing was installed.")


def _before_solving(names: list[str], to: Path | None) -> None:
    """Raise for names that mean nothing and a folder that is none: solving takes minutes."""
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
            errors.append(
                InvalidInput(
                    Problem(
                        f"lock files cannot be kept there: {error.strerror}",
                        str(to),
                        todo="name a folder that you may write to with --to",
                    )
                )
            )
    if errors:
        raise together(errors, outcome="Nothing was solved for.")


def locks(
    name: str,
    release: str | None,
    root: Path | None,
    to: Path | None,
    progress: Any,
    profile: str = "",
) -> Iterator[Solved | MvstackError]:
    """Concretize each partition that ``name`` means; what is wrong with one stops no other."""
    from mvstack.builders.spack import builder
    from mvstack.builders.spack.pins import load_pins
    from mvstack.install import stages

    system, partitions = stages.load(name)
    clones_in = root.absolute() if root else Path(stages.default_root())
    pins = load_pins()
    for partition in partitions:
        with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as folder:
            try:
                plan = stages.plan_for(system, partition, release, None, profile=profile)
                place = Path(folder)
                isolated = builder.prepared(
                    clones_in, pins, progress, place / "spack", place / "store", None
                )
                yield from _partition(plan, place, isolated, pins, to, progress)
            except MvstackError as error:
                yield error


def _partition(
    plan: Any, place: Path, isolated: Any, pins: Any, to: Path | None, progress: Any
) -> Iterator[Solved]:
    import shutil

    from mvstack.builders.spack import builder, handed
    from mvstack.builders.spack import lock as locking
    from mvstack.builders.spack.environments import Environment, apart
    from mvstack.builders.spack.runner import Spack
    from mvstack.render.partition import write

    files = locking.environment_files(builder.environment(plan))
    inputs = locking.inputs_of(files, pins)
    name = f"{plan.system}/{plan.partition}"
    logs = isolated.clones.home / "logs" / f"{plan.system}-{plan.partition}"
    write(files, place / "environment")
    isolated = replace(isolated, repos=builder.overlay_in(place / "environment"))
    for what, folder in (("compiler", "compiler"), ("stack", "")):
        environment = place / "environment" / folder
        if not (environment / "spack.yaml").is_file():
            continue
        began = time.monotonic()
        spack = Spack(apart(isolated, what), logs)
        found = Environment(
            spack, plan, f"{name}, {what}", environment, place / f"{what}.json", inputs
        ).locked(progress)
        if what == "stack":
            locking.through_the_gates(found, plan.as_dict(), isolated.clones)
        if to is not None:
            target = to / plan.system / plan.partition / folder / "spack.lock"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(found.file, target)
        yield Solved(
            name,
            what,
            len(found.graph.nodes),
            len(found.graph.built),
            round(time.monotonic() - began, 1),
        )
    if to is not None:
        handed.note(plan, to / plan.system / plan.partition)
