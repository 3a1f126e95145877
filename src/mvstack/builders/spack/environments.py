"""The environments of a tree, the compiler's and the stack's: solved for, fetched, installed."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from mvstack.builders.base import Row, Run
from mvstack.builders.spack import lock, sources
from mvstack.builders.spack.installing import Installing, Todo
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.modules import Part
from mvstack.builders.spack.resolve import installed, pending
from mvstack.builders.spack.runner import Spack
from mvstack.model.spack_lock import Lock, Node
from mvstack.plan.types import Plan
from mvstack.support.progress import Progress
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
