"""Spack as a builder: one environment a partition, solved for once, installed by its lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mvstack.builders.base import Builder, Entry, Note, Rendered, Row, Run, Which
from mvstack.builders.spack import bundle, cache, handed, install, resolve, signing
from mvstack.builders.spack.clone import home, load_pins
from mvstack.builders.spack.environments import store_of
from mvstack.builders.spack.lock import locks_of
from mvstack.cache.gpg import Key
from mvstack.cache.place import Place
from mvstack.cache.use import Caches
from mvstack.model.system import System
from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import Plan
from mvstack.sources.fetch import Fetcher
from mvstack.support.errors import Problem
from mvstack.support.progress import Progress

ANY = 4096  # characters: Spack moves a binary to whatever path


class Spack:
    """See :class:`mvstack.builders.base.Builder`."""

    title = "Spack"
    solves = True
    words: tuple[str, ...] = ("spack", "variants")
    requirements: tuple[str, ...] = ("spack.txt",)

    def resolve(self, rendered: Rendered) -> Graph:
        return resolve.resolve(rendered)

    def environment(self, rendered: Rendered) -> dict[str, str]:
        return resolve.environment(rendered)

    def shown(self, rendered: Rendered) -> tuple[Any, Any]:
        return resolve.shown(rendered)

    def doubts(self, system: System, partition: str) -> list[Problem]:
        return []

    def pending(self, plan: Plan) -> list[Row]:
        return install.pending(plan)

    def steps(self, plan: Plan) -> int:
        return 3  # Spack itself, the lock, the packages

    def install(self, plan: Plan, run: Run) -> list[Row]:
        return install.install(plan, run)

    def installed(self, plan: Plan) -> frozenset[str]:
        there = resolve.installed(store_of(Path(plan.tree)))
        nodes = [
            node for one in locks_of(Path(plan.tree)) for node in resolve.built(resolve.read(one))
        ]
        return frozenset(node.hash for node in nodes if node.hash in there)

    def push(
        self, plan: dict[str, Any], to: Place, key: Key, progress: Progress, which: Which
    ) -> list[Row]:
        return cache.push(plan, to, key, progress, which)

    def cached(self, place: Place, os_name: str, node: Node) -> int | None:
        folder = place.folder
        there = folder and cache.entry(folder / cache.FOLDER, node.name, node.content)
        return ANY if there else None

    def entries(self, handover: Place) -> Iterator[tuple[str, Callable[[], Entry]]]:
        return signing.entries(handover)

    def share(self, plan: Plan, folder: Path) -> None:
        own = home(Path(plan.root), load_pins())
        shared = folder / "spack" / own.name
        shared.mkdir(parents=True, exist_ok=True)
        own.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # a root that has one keeps it
            own.symlink_to(shared)

    def hand_on(self, plan: Plan, to: Path) -> None:
        handed.hand_on(plan, to)

    def tools(self, plan: Plan, target: Path, note: Note) -> None:
        bundle.repositories(Path(plan.root), target / "spack", note)

    def sources(self, plan: Plan, fetcher: Fetcher, target: Path, progress: Progress) -> list[str]:
        return bundle.sources(plan, fetcher, target, progress)

    def binaries(
        self, plan: Plan, caches: Caches, target: Place, progress: Progress
    ) -> tuple[list[str], int]:
        return bundle.binaries(plan, target, progress), len(plan.root)


BUILDER: Builder = Spack()
