"""The environments of a tree, the compiler's and the stack's: made ready, solved for, installed."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.builders.base import Row, Run
from mvstack.builders.spack import accepted, lock, sources
from mvstack.builders.spack.clone import Pins, clones, home, load_pins, present
from mvstack.builders.spack.installing import Installing, Todo
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.modules import Part
from mvstack.builders.spack.python import python
from mvstack.builders.spack.resolve import installed, pending
from mvstack.builders.spack.runner import Spack
from mvstack.cache.use import Caches
from mvstack.model.spack_lock import Lock, Node
from mvstack.plan.types import Plan
from mvstack.render.partition import render, write
from mvstack.support.progress import Progress
from mvstack.tree.folder import MARK
from mvstack.tree.records import Records


@dataclass(frozen=True)
class Environment:
    """``folder`` holds spack.yaml and spack.lock, ``record`` says what the lock was made from."""

    spack: Spack
    plan: Plan
    what: str
    folder: Path
    record: Path
    inputs: str

    @property
    def known(self) -> bool:
        """Whether the lock that stands there is of these inputs."""
        there = (self.folder / "spack.lock").is_file()
        return there and lock.known_inputs(self.record) == self.inputs

    def locked(self, progress: Progress) -> lock.Locked:
        """The lock, solved for now if it is not known. Raises BuildFailed when nothing fits."""
        if self.known:
            progress.skip("concretize", self.what, "its inputs are as they were")
            return self._locked(lambda _: None)
        with progress.step("concretize", self.what, log=self.spack.log("concretize")) as step:
            found = self._locked(step.note)
            step.note(f"{len(found.answer.nodes)} packages")
        return found

    def _locked(self, note: lock.Note) -> lock.Locked:
        return lock.concretized(self.spack, self.folder, self.inputs, self.record, note, self.what)

    def pending(self, found: lock.Locked) -> list[Node]:
        """What of the lock is not installed."""
        return pending(found.answer, installed(self.spack.isolated.store))

    def build(
        self, todo: list[Node], parts: dict[str, Part], run: Run, offered: Container[str] = ()
    ) -> list[Row]:
        """Fetch the sources of ``todo`` and install it; a row for each package.

        What is ``offered`` (hashes) comes from a cache and needs no source; ``parts`` are the parts
        of the plan by hash. Where the caches alone are to be used, nothing is compiled.
        """
        only_cached = bool(run.caches and run.caches.only)
        fetched: dict[str, list[Row]] = {}
        if not only_cached:
            fetched = self._fetched([one.hash for one in todo if one.hash not in offered], run)
        words = ["--use-buildcache", "only"] if only_cached else []
        return self._installing(Todo(todo, parts, fetched), run).install(*words)

    def build_each(
        self, order: list[Node], answer: Lock, run: Run, offered: Container[str]
    ) -> list[Row]:
        """Install each of ``order`` alone, and what it needs from caches; a row for each package.

        What is ``offered`` (hashes) comes from a cache, the others of ``order`` are built; nothing
        else is.
        """
        built = [node.hash for node in order if node.hash not in offered]
        fetched = self._fetched(built, run) if built else {}
        rows: list[Row] = []
        for node in order:
            there = installed(self.spack.isolated.store)
            needed = pending(answer, there, offered, [node.hash])
            if not needed:
                continue  # another one has brought it along
            how = "only" if node.hash in offered else "never"
            words = ("--use-buildcache", f"package:{how},dependencies:only", f"/{node.hash}")
            rows += self._installing(Todo(needed, {}, fetched), run).install(*words)
        return rows

    def _installing(self, todo: Todo, run: Run) -> Installing:
        return Installing(self.spack, self.folder, self.plan, todo, run)

    def _fetched(self, built: list[str], run: Run) -> dict[str, list[Row]]:
        """Bring the sources of what is to be ``built`` (hashes) into the mirror."""
        asked = {"parts": [], "sources": built}
        answer = self.spack.ask("look", self.folder, asked, lambda _: None)
        records = Records(Path(self.plan.tree))
        return sources.fetch(
            answer["sources"], answer["others"], run.fetcher, records, run.progress
        )


def apart(isolated: Isolated, name: str) -> Isolated:
    """The same Spack with a configuration scope of its own.

    For the environment of a compiler: Spack finds the system's compilers and notes them in its
    scope, where the stack's environment must not see them.
    """
    own = replace(isolated, state=isolated.state / name)
    own.write()
    return own


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
            lock.through_the_gates(locked, plan, isolated.clones)
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
