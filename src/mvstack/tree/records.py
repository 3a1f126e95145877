"""What is known of a tree: which build made each module, how long it took, from which bytes.

What of a graph is installed is decided by content hashes, not by dates.
"""

import json
import socket
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from mvstack.plan.graph import Graph, Node
from mvstack.plan.types import Plan
from mvstack.support.errors import Refused
from mvstack.support.files import write_atomically


def kept_plan(tree: Path) -> dict[str, Any]:
    """The plan that ``tree`` was built by. Raises OSError or ValueError when there is none."""
    path = tree / "records" / "plan.json"
    plan = json.loads(path.read_text())
    kinds = {"tree": str, "root": str, "mpi": list, "packages": list, "compiler": dict}
    if not (
        isinstance(plan, dict)
        and "release" in plan
        and all(isinstance(plan.get(name), kind) for name, kind in kinds.items())
        and all(isinstance(row, dict) for row in [*plan["mpi"], *plan["packages"]])
    ):
        raise ValueError(f"{path} is no plan")
    return plan


def in_place(tree: Path) -> dict[str, Any]:
    """As :func:`kept_plan`; raises Refused for a tree that was moved or copied, too.

    Its modules, programs and libraries hold the path at which it was made.
    """
    plan = kept_plan(tree)
    made = Path(plan["tree"])
    if not (made.exists() and made.samefile(tree)):
        raise Refused(
            "this tree was moved or copied",
            str(tree),
            found=f"it was made as {made}, and its modules, programs and libraries say so",
            todo="move it back, or install anew: give another --root, or remove this tree",
        )
    return plan


def mpi_contents(plan: dict[str, Any], hashes: dict[str, str]) -> dict[str, str]:
    """Content hash by module of each MPI of ``plan`` that is installed.

    ``hashes`` are :meth:`Records.hashes`: by easyconfig, or by module file where Spack builds.
    """
    found = {}
    for row in plan["mpi"]:
        module = str(row.get("module", ""))
        for key, content in hashes.items():
            if key == row.get("easyconfig") or key.endswith(f"/{module}.lua"):
                found[module] = content
    return found


class Records:
    """The records of one tree, below ``<tree>/records``."""

    def __init__(self, tree: Path) -> None:
        self.folder = tree / "records"

    def plan(self, plan: dict[str, Any]) -> None:
        """Keep the plan that this tree is built by."""
        write_atomically(self.folder / "plan.json", json.dumps(plan, indent=1) + "\n")

    def hashes(self) -> dict[str, str]:
        """Easyconfig → content hash of what is installed; empty when nothing is known."""
        try:
            found = json.loads((self.folder / "nodes.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def built(self, easyconfig: str, content: str) -> None:
        """Note that ``easyconfig`` is installed as of ``content``."""
        known = {**self.hashes(), easyconfig: content}
        write_atomically(self.folder / "nodes.json", json.dumps(known, indent=1) + "\n")

    def forget(self, easyconfig: str) -> None:
        """Note that ``easyconfig`` is installed no more."""
        known = {key: value for key, value in self.hashes().items() if key != easyconfig}
        write_atomically(self.folder / "nodes.json", json.dumps(known, indent=1) + "\n")

    def begin(self, easyconfig: str, content: str) -> None:
        """Note what is being built, so that a run after a kill knows what a module came from."""
        row = {"easyconfig": easyconfig, "hash": content}
        write_atomically(self.folder / "building.json", json.dumps(row) + "\n")

    def begun(self) -> dict[str, str]:
        """What :meth:`begin` noted last: key → hash."""
        try:
            found = json.loads((self.folder / "building.json").read_text())
            return {found["easyconfig"]: found["hash"]}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def append(self, name: str, row: dict[str, Any]) -> None:
        """Add one row to ``<name>.jsonl``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.jsonl").open("a") as stream:
            stream.write(json.dumps(row) + "\n")


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
