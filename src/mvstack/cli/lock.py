"""``mvstack lock`` and ``gate``: hold what Spack answers to the gates, on any machine."""

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mvstack.builders.spack import handed
from mvstack.builders.spack.environments import given, prepared, solved
from mvstack.builders.spack.lock import Environment
from mvstack.ci.lock import over_compilers
from mvstack.cli import options
from mvstack.install import stages
from mvstack.model.load import load_system, system_names
from mvstack.model.spack_lock import Lock, read_lock
from mvstack.plan.types import Extent, Plan
from mvstack.support.console import say
from mvstack.support.errors import InvalidInput, MvstackError, gathered, telling, together
from mvstack.support.files import full
from mvstack.support.progress import Progress

app = options.commands()


@app.command(epilog="Examples: mvstack lock   ·   mvstack lock expanse/cpu --to locks")
def lock(
    systems: options.Systems = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    to: Annotated[
        Path | None,
        Option(metavar="DIR", help="Keep the lock files as DIR/SYSTEM/PARTITION/spack.lock."),
    ] = None,
    compilers: Annotated[
        str, Option(metavar="DIR", help="For pipelines: folder of compilers that Spack builds.")
    ] = "",
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
    clones_in = Path(stages.default_root(root))
    shown = options.progress(as_json)
    done: list[dict[str, Any]] = []
    for system, partitions in loaded:
        for partition in partitions:
            with gathered(errors):
                extent = Extent(profile or "")
                plan = stages.plan_for(system, partition, release, None, extent=extent)
                plan = over_compilers(plan, compilers) if compilers else plan
                done += _solved(plan, clones_in, to, shown)
    if not (as_json and errors):
        line = "{name}: {what}: {packages} packages, {built} of them to build, {seconds:.0f} s"
        say(done, as_json, *(line.format(**one) for one in done))
    if errors:
        raise together(errors, outcome="Nothing was installed.")


def _writable(folder: Path) -> None:
    todo = "name a folder that you may write to with --to"
    with telling(InvalidInput, "lock files cannot be kept there", where=str(folder), todo=todo):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def _solved(
    plan: Plan, root: Path, to: Path | None, progress: Progress
) -> Iterator[dict[str, Any]]:
    """A row for each environment: how many packages its answer has, and how long it took."""
    target = to / plan.system / plan.partition if to else None
    with tempfile.TemporaryDirectory(prefix="mvstack-lock-") as folder:
        place = Path(folder)
        for one, row in _rows(solved(plan, root, place, progress), plan):
            if target is not None:
                file = target / one.file.relative_to(place / "rendered" / "spack")
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one.file, file)
            yield row
    if target is not None:
        handed.note(plan, target)


def _rows(
    answers: Iterable[tuple[Environment, Lock]], plan: Plan
) -> Iterator[tuple[Environment, dict[str, Any]]]:
    name, began = f"{plan.system}/{plan.partition}", time.monotonic()
    for one, answer in answers:
        what = "compiler" if one.of_compiler else "stack"
        row = {"name": name, "what": what, "packages": len(answer.nodes)}
        row |= {"built": len(answer.built()), "seconds": round(time.monotonic() - began, 1)}
        yield one, row
        began = time.monotonic()


@app.command(epilog="Example: mvstack gate spack.lock expanse/cpu")
def gate(
    file: Annotated[
        Path, Argument(metavar="LOCK", help="A spack.lock; compiler/ beside it is checked too.")
    ],
    partition: Annotated[
        str,
        Argument(
            metavar="SYSTEM/PARTITION",
            help="What it was solved for; else what the folders that it is in are called.",
            autocompletion=options.systems,
        ),
    ] = "",
    release: options.ReleaseName = None,
    root: options.Root = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Check a lock file of Spack that you solved by hand against the plan. Builds nothing."""
    read_lock(file)  # what is none is told before Spack is cloned
    folders = [one for one in full(file).parent.parts if one != "spack"]
    name = partition or "/".join(folders[-2:])
    system, partitions = stages.load(name, release)
    only = stages.only_one(name, partitions, f"gate {file}")
    plan = stages.plan_for(system, only, release, None, extent=Extent(profile or ""))
    clones_in, shown = Path(stages.default_root(root)), options.progress(as_json)
    with tempfile.TemporaryDirectory(prefix="mvstack-gate-") as folder:
        environments = prepared(plan, clones_in, Path(folder), shown)
        done = [row for _, row in _rows(given(environments, file, shown), plan)]
    line = "{name}: {what}: {packages} packages pass the gates, {seconds:.0f} s"
    say(done, as_json, *(line.format(**one) for one in done))
