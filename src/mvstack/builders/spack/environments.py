"""One Spack environment of a tree, from its lock to its packages: the compiler's or the stack's."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.builders.spack import lock, sources
from mvstack.builders.spack.graph import Graph, Node, installed
from mvstack.builders.spack.installing import Installing
from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.modules import Part
from mvstack.builders.spack.runner import Spack
from mvstack.plan.types import Plan
from mvstack.sources import Fetcher
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

Row = dict[str, Any]


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
            step.note(f"{len(found.graph.nodes)} packages")
        return found

    def _locked(self, note: lock.Note) -> lock.Locked:
        return lock.concretized(self.spack, self.folder, self.inputs, self.record, note, self.what)

    def pending(self, found: lock.Locked) -> list[Node]:
        """What of the lock is not installed."""
        return found.graph.pending(installed(self.spack.isolated.store))

    def build(
        self,
        todo: list[Node],
        parts: dict[str, Part],
        fetcher: Fetcher,
        records: Records,
        progress: Progress,
        *,
        only_cached: bool = False,
        offered: Container[str] = (),
    ) -> list[Row]:
        """Fetch the sources of ``todo`` and install it; a row for each package.

        What is ``offered`` (hashes) comes from a cache and needs no source.

        ``parts`` are the parts of the plan by hash. With ``only_cached`` nothing is compiled and
        no source is needed.
        """
        fetched: dict[str, list[Row]] = {}
        if not only_cached:
            built = [node.hash for node in todo if node.hash not in offered]
            fetched = self._fetched(built, fetcher, records, progress)
        by_hash = {node.hash: node for node in todo}
        words = ["--use-buildcache", "only"] if only_cached else []
        run = Installing(
            self.spack, self.folder, self.plan, by_hash, parts, fetched, records, progress
        )
        return run.install(*words)

    def build_each(
        self,
        order: list[Node],
        graph: Graph,
        fetcher: Fetcher,
        records: Records,
        progress: Progress,
        offered: Container[str],
    ) -> list[Row]:
        """Install each of ``order`` alone, and what it needs from caches; a row for each package.

        What is ``offered`` (hashes) comes from a cache, the others of ``order`` are built; nothing
        else is.
        """
        built = [node.hash for node in order if node.hash not in offered]
        fetched = self._fetched(built, fetcher, records, progress) if built else {}
        rows: list[Row] = []
        for node in order:
            there = installed(self.spack.isolated.store)
            needed = replace(graph, roots=[{"hash": node.hash}]).pending(there, offered)
            if not needed:
                continue  # another one has brought it along
            by_hash = {one.hash: one for one in needed}
            how = "only" if node.hash in offered else "never"
            words = ("--use-buildcache", f"package:{how},dependencies:only", f"/{node.hash}")
            run = Installing(
                self.spack, self.folder, self.plan, by_hash, {}, fetched, records, progress
            )
            rows += run.install(*words)
        return rows

    def _fetched(
        self, built: list[str], fetcher: Fetcher, records: Records, progress: Progress
    ) -> dict[str, list[Row]]:
        """Bring the sources of what is to be ``built`` (hashes) into the mirror."""
        asked = {"parts": [], "sources": built}
        answer = self.spack.ask("look", self.folder, asked, lambda _: None)
        return sources.fetch(answer["sources"], answer["others"], fetcher, records, progress)


def apart(isolated: Isolated, name: str) -> Isolated:
    """The same Spack with a configuration scope of its own.

    For the environment of a compiler: Spack finds the system's compilers and notes them in its
    scope, where the stack's environment must not see them.
    """
    own = replace(isolated, state=isolated.state / name)
    own.write()
    return own
