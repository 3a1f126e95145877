"""Spack as a builder: one environment a partition, solved for once, installed by its lock."""

import contextlib
from pathlib import Path

from mvstack.builders.base import Builder
from mvstack.builders.spack import bundle, cache, handed, install, resolve
from mvstack.builders.spack.clone import home
from mvstack.builders.spack.environments import store_of
from mvstack.builders.spack.lock import locks_of
from mvstack.cache.place import Place
from mvstack.model.spack import spack_pins
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan

ANY = 4096  # characters: Spack moves a binary to whatever path


class Spack:
    """See :class:`mvstack.builders.base.Builder`."""

    title = "Spack"
    solves = True
    words: tuple[str, ...] = ("spack", "variants")
    requirements: tuple[str, ...] = ("spack.txt",)

    environment = staticmethod(resolve.environment)
    shown = staticmethod(resolve.shown)
    resolve = staticmethod(resolve.resolve)
    pending = staticmethod(install.pending)
    install = staticmethod(install.install)
    push = staticmethod(cache.push)
    entries = staticmethod(cache.entries)
    hand_on = staticmethod(handed.hand_on)
    tools = staticmethod(bundle.repositories)
    sources = staticmethod(bundle.sources)
    binaries = staticmethod(bundle.binaries)

    def steps(self, plan: Plan) -> int:
        return 3  # Spack itself, the lock, the packages

    def installed(self, plan: Plan) -> frozenset[str]:
        there = resolve.installed(store_of(Path(plan.tree)))
        locks = map(resolve.read, locks_of(Path(plan.tree)))
        return frozenset(one.hash for lock in locks for one in lock.built()) & there.keys()

    def cached(self, place: Place, os_name: str, node: Node) -> int | None:
        folder = place.folder
        there = folder and cache.entry(folder / cache.FOLDER, node.name, node.content)
        return ANY if there else None

    def share(self, plan: Plan, folder: Path) -> None:
        own = home(Path(plan.root), spack_pins())
        shared = folder / "spack" / own.name
        shared.mkdir(parents=True, exist_ok=True)
        own.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # a root that has one keeps it
            own.symlink_to(shared)


BUILDER: Builder = Spack()
