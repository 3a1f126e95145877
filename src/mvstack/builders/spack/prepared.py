"""Spack made ready for one tree: cloned, isolated, and its environments in their places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvstack.builders.spack import accepted, lock
from mvstack.builders.spack.clone import clones, home, present
from mvstack.builders.spack.environments import Environment, apart
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.pins import Pins, load_pins
from mvstack.builders.spack.python import python
from mvstack.builders.spack.runner import Spack
from mvstack.cache.use import Caches
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.support.progress import Progress
from mvstack.tree.lock import MARK


def store_of(tree: Path) -> Path:
    """Where Spack installs packages of a tree."""
    return tree / "software"


def record_of(tree: Path) -> Path:
    """What is known of a tree's lock: its inputs, its roots, the seconds it took."""
    return tree / "records" / "lock.json"


def files_of(plan: Plan) -> dict[str, str]:
    """All files of a partition, with the overlay of bytes that the user accepted."""
    return {**render(plan), **accepted.overlay(plan)}


def inputs_of(files: dict[str, str], pins: Pins | None = None) -> str:
    """What decides the lock of a partition whose files are ``files``."""
    return lock.inputs_of(lock.environment_files(files), pins or load_pins())


def for_tree(
    plan: Plan, progress: Progress, jobs: int | None, state: Path | None = None
) -> Isolated:
    """Spack for the tree of ``plan``; its configuration goes into ``state``, else into the tree."""
    tree = Path(plan.tree)
    isolated = cloned(Path(plan.root), progress, state or tree / "spack", store_of(tree), jobs)
    repos = overlay_in(tree / "rendered" / "spack")
    isolated = replace(isolated, repos=repos, marks={MARK: str(tree)})
    isolated.write()
    return isolated


def cloned(
    root: Path, progress: Progress, state: Path, store: Path, jobs: int | None = None
) -> Isolated:
    """Spack below ``root``: cloned if need be, its Python made, its configuration written."""
    pins = load_pins()
    what = f"{pins.spack.tag} with packages {pins.packages.tag}"
    if present(root, pins) and (home(root, pins) / "python" / ".ready").is_file():
        found = clones(root, pins)
        interpreter = python(found.home)
        progress.skip("Spack", what, "already there")
    else:
        with progress.step("Spack", what) as step:
            found = clones(root, pins, step.note)
            interpreter = python(found.home, step.note)
    isolated = Isolated(
        clones=found, python=interpreter, state=state, store=store, root=root, jobs=jobs
    )
    isolated.write()
    return isolated


def overlay_in(folder: Path) -> dict[str, Path]:
    """The recipes of accepted bytes beside a rendered environment, if there are any."""
    found = folder / accepted.FOLDER
    return {accepted.NAMESPACE: found} if (found / "repo.yaml").is_file() else {}


def environments_of(isolated: Isolated, plan: Plan, inputs: str) -> list[Environment]:
    """The environments in the tree of ``plan``: the compiler's, if Spack builds it, the stack's."""
    tree, name = Path(plan.tree), f"{plan.system}/{plan.partition}"
    logs, folder = tree / "logs", tree / "rendered" / "spack"
    stack = Environment(Spack(isolated, logs), plan, name, folder, record_of(tree), inputs)
    if not (folder / "compiler" / "spack.yaml").is_file():
        return [stack]
    own, record = Spack(apart(isolated, "compiler"), logs), tree / "records" / "lock-compiler.json"
    what = f"the compiler of {name}"
    return [Environment(own, plan, what, folder / "compiler", record, inputs), stack]


def solved(
    plan: Plan, root: Path, place: Path, progress: Progress
) -> Iterator[tuple[Environment, lock.Locked]]:
    """The environments of ``plan`` solved for in the folder ``place``; nothing is installed.

    ``root`` is where Spack is cloned to. Raises what solving raises, and CheckFailed (a gate).
    """
    files = files_of(plan)
    write(files, place / "rendered")
    isolated = cloned(root, progress, place / "state", place / "store")
    isolated = replace(isolated, repos=overlay_in(place / "rendered" / "spack"))
    logs = isolated.clones.home / "logs" / f"{plan.system}-{plan.partition}"
    for what, folder in (("compiler", "spack/compiler"), ("stack", "spack")):
        where = place / "rendered" / folder
        if not (where / "spack.yaml").is_file():
            continue
        spack, name = Spack(apart(isolated, what), logs), f"{plan.system}/{plan.partition}, {what}"
        one = Environment(spack, plan, name, where, place / f"{what}.json", inputs_of(files))
        locked = one.locked(progress)
        if what == "stack":
            lock.through_the_gates(locked, plan.as_dict(), isolated.clones)
        yield one, locked


def mirrors_of(caches: Caches | None) -> dict[str, dict[str, Any]]:
    """The binary mirrors of ``caches``: signed ones only."""
    return {
        f"mvapich-stack-cache-{number}": {
            "url": f"{place.url}/spack",
            "source": False,
            "binary": True,
            "signed": True,
        }
        for number, place in enumerate(caches.places if caches else (), 1)
    }
