"""EasyBuild as a builder: one easyconfig a node, installed with ``eb``."""

from pathlib import Path
from typing import Any

from mvstack.builders.base import Builder, Note, Rendered, Row, graph_of
from mvstack.builders.easybuild import bundle, install, signing
from mvstack.cache import push, store
from mvstack.cache.place import Place
from mvstack.plan.easybuild import build_order
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan
from mvstack.plan.usage import usage_of
from mvstack.tree.nodes import State, work
from mvstack.tree.records import Records


class EasyBuild:
    """See :class:`mvstack.builders.base.Builder`."""

    title = "EasyBuild"
    solves = False
    words: tuple[str, ...] = ("easyconfig", "parameters")
    requirements: tuple[str, ...] = ()

    resolve = staticmethod(install.resolve)
    install = staticmethod(install.install)
    push = staticmethod(push.push)
    entries = staticmethod(signing.entries)
    sources = staticmethod(bundle.sources)
    binaries = staticmethod(bundle.binaries)

    def environment(self, rendered: Rendered) -> dict[str, str]:
        return {}

    def shown(self, rendered: Rendered) -> tuple[Any, Any]:
        files = [f"easyconfigs/{build.easyconfig}" for build in rendered.plan.mpi]
        return "", [usage_of(rendered.files[one]) for one in files if one in rendered.files]

    def pending(self, plan: Plan) -> list[Row]:
        return [
            {
                "result": f"would build ({item.state.value})",
                "package": item.node.name,
                "version": item.node.version,
                "module": item.node.module,
                "easyconfig": item.node.key,
                "hash": item.node.content,
            }
            for item in work(graph_of(plan), Path(plan.tree))
            if item.state is not State.PRESENT
        ]

    def steps(self, plan: Plan) -> int:
        return len(build_order(plan))

    def installed(self, plan: Plan) -> frozenset[str]:
        return frozenset(Records(Path(plan.tree)).hashes())

    def cached(self, place: Place, os_name: str, node: Node) -> int | None:
        entry = store.find(place, os_name, node.content)
        return len(entry.manifest.tree) if entry else None

    def share(self, plan: Plan, folder: Path) -> None:
        pass  # it is a package of Python, installed with mvstack

    def hand_on(self, plan: Plan, to: Path) -> None:
        pass  # nothing was solved for

    def tools(self, plan: Plan, target: Path, note: Note) -> None:
        pass  # among the wheels


BUILDER: Builder = EasyBuild()
