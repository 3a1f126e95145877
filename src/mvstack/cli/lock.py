"""``mvstack lock``: concretize systems and hold the answer to the gates, on any machine."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from mvstack.builders.spack import handed
from mvstack.builders.spack.environments import solved
from mvstack.cli import options
from mvstack.install import stages
from mvstack.model.load import load_system, system_names
from mvstack.plan.types import Extent, Plan
from mvstack.support.console import say
from mvstack.support.errors import InvalidInput, MvstackError, gathered, together
from mvstack.support.progress import Progress

app = options.commands()


@dataclass(frozen=True)
class Solved:
    """One environment: how many packages the solver's answer has, and how long it took."""

    name: str
    what: str
    packages: int
    built: int
    seconds: float


@app.command(
    epilog="Examples: mvstack lock   ·   mvstack lock expanse/cpu --to locks",
)
def lock(
    systems: options.Systems = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    to: Annotated[
        Path | None,
        Option(metavar="DIR", help="Keep the lock files as DIR/SYSTEM/PARTITION/spack.lock."),
    ] = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Concretize partitions with Spack and check the lock files. Builds nothing."""
    names = systems or [name for name in system_names() if load_system(name).partitions]
    errors: list[MvstackError] = []
    loaded = []
    for name in names:  # all of them first: solving takes minutes
        with gathered(errors):
            loaded.append(stages.load(name))
    if to is not None:
        with gathered(errors):
            _writable(to)
    if errors:
        raise together(errors, outcome="Nothing was solved for.")
    clones_in = root.absolute() if root else Path(stages.default_root())
    shown = options.progress(as_json)
    done: list[Solved] = []
    for system, partitions in loaded:
        for partition in partitions:
            with gathered(errors):
                extent = Extent(profile or "")
                plan = stages.plan_for(system, partition, release, None, extent=extent)
                done += _solved(plan, clones_in, to, shown)
    if not (as_json and errors):
        lines = (
            f"{one.name}: {one.what}: {one.packages} packages, {one.built} of them to build, "
            f"{one.seconds:.0f} s"
            for one in done
        )
        say([asdict(one) for one in done], as_json, *lines)
    if errors:
        raise together(errors, outcome="Nothing was installed.")


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise InvalidInput(
            f"lock files cannot be kept there: {error.strerror}",
            str(folder),
            todo="name a folder that you may write to with --to",
        ) from None


def _solved(plan: Plan, root: Path, to: Path | None, progress: Progress) -> Iterator[Solved]:
    name, began = f"{plan.system}/{plan.partition}", time.monotonic()
    target = to / plan.system / plan.partition if to else None
    with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as folder:
        place = Path(folder)
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
