"""EasyBuild as a builder: one easyconfig a node, installed with ``eb``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mvstack.builders.base import Builder, Entry, Rendered, Row, graph_of
from mvstack.builders.easybuild import bundle, install
from mvstack.builders.easybuild.expected import expected, times_known
from mvstack.cache import gpg, push, store, unpack
from mvstack.cache.place import NotBelieved, Place
from mvstack.plan.easybuild import build_order
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan
from mvstack.plan.usage import usage_of
from mvstack.tree.records import Records, State, work


@dataclass(frozen=True)
class Built(Entry):
    """See :class:`mvstack.builders.base.Entry`."""

    found: store.Entry

    def is_of(self, node: Node | None, plan: Plan) -> bool:
        made = self.found.manifest
        says = (made.easyconfig, made.module_file)
        wanted = (node.key, f"modules/{node.file}") if node else says
        return (says, made.os, made.target) == (wanted, plan.os, plan.target)

    def good(self, target: Place, content: str) -> bool:
        return push.good(target, self.found.manifest.os, content) is not None

    def put(self, target: Place, key: gpg.Key) -> None:
        # what is signed is what is looked at here, and not what lies in the handover later
        with self.found.brought() as archive:
            made = self.found.manifest
            unpack.check(made, archive)
            store.put(target, made, gpg.sign(made.text(), key.fingerprint), archive, key)


def entries(handover: Place) -> Iterator[tuple[str, Callable[[], Entry]]]:
    """See :meth:`mvstack.builders.base.Builder.entries`."""
    for os_name, content in store.names(handover):
        yield store.manifest_name(os_name, content), partial(_read, handover, os_name, content)


def _read(source: Place, os_name: str, content: str) -> Built:
    found = store.find(source, os_name, content)
    if found is None:
        raise NotBelieved("it was there a moment ago")
    with found.brought():
        made = found.manifest
        told = (made.package, made.version, made.content, made.archive.size, found.signer)
        return Built(source, *told, made.easyconfig, tuple(made.requires), found)


class EasyBuild(Builder):
    """See :class:`mvstack.builders.base.Builder`."""

    title = "EasyBuild"
    solves = False
    words: tuple[str, ...] = ("easyconfig", "parameters")
    requirements: tuple[str, ...] = ()

    resolve = staticmethod(install.resolve)
    install = staticmethod(install.install)
    push = staticmethod(push.push)
    entries = staticmethod(entries)
    sources = staticmethod(bundle.sources)
    binaries = staticmethod(bundle.binaries)

    def shown(self, rendered: Rendered) -> tuple[Any, Any]:
        files = [f"easyconfigs/{build.easyconfig}" for build in rendered.plan.mpi]
        return "", [usage_of(rendered.files[one]) for one in files if one in rendered.files]

    def pending(self, plan: Plan) -> list[Row]:
        tree, times = Path(plan.tree), times_known(Path(plan.tree))
        return [
            {
                "result": f"would build ({item.state.value})",
                "package": item.node.name,
                "version": item.node.version,
                "module": item.node.module,
                "easyconfig": item.node.key,
                "hash": item.node.content,
                "takes": expected([item.node], times),
            }
            for item in work(graph_of(plan), tree)
            if item.state is not State.PRESENT
        ]

    def steps(self, plan: Plan) -> int:
        return len(build_order(plan))

    def installed(self, plan: Plan) -> frozenset[str]:
        return frozenset(Records(Path(plan.tree)).hashes())

    def cached(self, place: Place, os_name: str, node: Node) -> int | None:
        entry = store.find(place, os_name, node.content)
        return len(entry.manifest.tree) if entry else None


BUILDER: Builder = EasyBuild()
