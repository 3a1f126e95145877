"""What of a graph is installed in a tree: decided by content hashes, not by dates."""

import socket
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import Plan
from mvstack.tree.records import Records


class State(Enum):
    """Whether a node must be built."""

    PRESENT = "present"
    MISSING = "missing"
    CHANGED = "changed"


@dataclass(frozen=True)
class Work:
    """A node with its state in one tree, and its module there."""

    node: Node
    module_file: Path
    state: State


def work(graph: Graph, tree: Path) -> list[Work]:
    """Every node of ``graph`` in build order with its state in ``tree``."""
    records = Records(tree)
    known, begun = records.hashes(), records.begun()
    result: list[Work] = []
    for node in graph.nodes.values():
        file = tree / "modules" / node.file
        if not file.is_file():
            state = State.MISSING
        elif node.content in (known.get(node.key), begun.get(node.key)):
            # begun: killed between the module (written last, whole) and our note of it
            state = State.PRESENT
        else:
            state = State.CHANGED
        result.append(Work(node, file, state))
    return result


def build_row(node: Node, plan: Plan) -> dict[str, Any]:
    """The begin of a row of builds.jsonl: what is made, where and when."""
    return {
        "package": node.name,
        "version": node.version,
        "module": node.module,
        "mpi": node.mpi,
        "easyconfig": node.key,
        "hash": node.content,
        "started": time.strftime("%FT%TZ", time.gmtime()),
        "host": socket.gethostname(),
        "cores": plan.cores,
    }
