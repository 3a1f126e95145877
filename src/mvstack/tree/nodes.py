"""What of a plan is installed, what is not, and what must be built anew: asked of hashes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from mvstack.plan import easyconfigs
from mvstack.plan.contents import contents
from mvstack.plan.definitions import definitions
from mvstack.plan.types import Plan
from mvstack.render.partition import Node
from mvstack.tree.records import Records


class State(Enum):
    """Whether a node must be built."""

    PRESENT = "present"
    MISSING = "missing"
    CHANGED = "changed"


@dataclass(frozen=True)
class Work:
    """One node of the plan with its content hash, its module file and its state.

    ``needs`` are the easyconfigs that it stands on, all of them.
    """

    node: Node
    content: str
    module_file: Path
    state: State
    needs: tuple[str, ...] = ()


def module_file(plan: Plan, node: Node) -> Path:
    """Where the module of ``node`` stands in the hierarchy."""
    tree = Path(plan.tree) / "modules"
    gcc = plan.compiler["version"]
    if node.kind == "compiler":
        name = node.name.lower()
        version = f".{gcc}" if name == "gcccore" else gcc
        return tree / "Core" / name / f"{version}.lua"
    if node.kind == "toolchain":
        stem = node.easyconfig.removesuffix(".eb").partition("-")[2]
        return tree / "Core" / node.name.lower() / f".{stem}.lua"
    level = tree / "Compiler" / "gcc" / gcc
    if node.kind == "package" and node.mpi:
        level = tree / "MPI" / "gcc" / gcc / node.mpi
    return level / f"{node.module}.lua"


def work(plan: Plan, files: dict[str, str], records: Records) -> list[Work]:
    """Every node of the plan in build order with its state; ``files`` is what the plan renders.

    What its hash covers: :func:`mvstack.plan.contents.contents`.
    """
    known, begun = records.hashes(), records.begun()
    built_by = definitions(easyconfigs.FOLDER)
    result: list[Work] = []
    for one in contents(plan, lambda node: _text(plan, node, files), built_by):
        node, content = one.node, one.content
        file = module_file(plan, node)
        if not file.is_file():
            state = State.MISSING
        elif known.get(node.easyconfig) == content:
            state = State.PRESENT
        elif begun == {"easyconfig": node.easyconfig, "hash": content}:
            # killed between the module (written last, whole) and our note of it
            state = State.PRESENT
        else:
            state = State.CHANGED
        result.append(Work(node, content, file, state, one.needs))
    return result


def _text(plan: Plan, node: Node, files: dict[str, str]) -> str:
    own = files.get(f"easyconfigs/{node.easyconfig}")
    if own is not None:
        return own
    on_compiler = node.kind == "compiler" or (node.kind == "package" and not node.mpi)
    if on_compiler and not easyconfigs.ours(node.easyconfig, plan.compiler["origin"]):
        return node.easyconfig  # stock EasyBuild's; its version is part of the name
    return easyconfigs.text(node.easyconfig, f"{plan.system}/{plan.partition}")
