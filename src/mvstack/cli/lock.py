"""``mvstack lock``: concretize systems and hold the answer to the gates, on any machine."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

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
            loaded.append(stages.load(name, release))
    if to is not None:
        with gathered(errors):
            _writable(to)
    if errors:
        raise together(errors, outcome="Nothing was solved for.")
    clones_in = root.absolute() if root else Path(stages.default_root())
    shown = options.progress(as_json)
    done: list[dict[str, Any]] = []
    for system, partitions in loaded:
        for partition in partitions:
            with gathered(errors):
                extent = Extent(profile or "")
                plan = stages.plan_for(system, partition, release, None, extent=extent)
                done += _solved(plan, clones_in, to, shown)
    if not (as_json and errors):
        line = "{name}: {what}: {packages} packages, {built} of them to build, {seconds:.0f} s"
        say(done, as_json, *(line.format(**one) for one in done))
    if errors:
        raise together(errors, outcome="Nothing was installed.")


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidInput(
            f"lock files cannot be kept there: {error.strerror}",
            str(folder),
            todo="name a folder that you may write to with --to",
        ) from None


def _solved(
    plan: Plan, root: Path, to: Path | None, progress: Progress
) -> Iterator[dict[str, Any]]:
    """A row for each environment: how many packages its answer has, and how long it took."""
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
            row = {"name": name, "what": what, "packages": len(answer.nodes)}
            row |= {"built": len(answer.built()), "seconds": round(time.monotonic() - began, 1)}
            yield row
            began = time.monotonic()
    if target is not None:
        handed.note(plan, target)
