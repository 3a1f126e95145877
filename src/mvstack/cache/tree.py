"""What an installed tree holds, by its own records: nothing is planned anew."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.plan.easybuild import build_order
from mvstack.plan.graph import Node
from mvstack.plan.types import Plan, plan_of
from mvstack.support import hashes
from mvstack.tree.records import Records

_ASKS = re.compile(r'^\s*(?:depends_on|load|always_load)\("([^"]+)"\)', re.M)


@dataclass(frozen=True)
class Installed:
    """One package that is installed: its content hash, its paths, and the row of its build.

    ``requires`` are contents of packages that no plan names and that it needs.
    """

    node: Node
    content: str
    module_file: Path
    software: Path
    build: dict[str, Any]
    requires: tuple[str, ...] = ()


def installed(data: dict[str, Any]) -> tuple[Plan, list[Installed]]:
    """The plan of a tree and its packages that are whole, in build order.

    ``data`` is its plan.json. Whole is what has its module and is recorded with its hash. What
    EasyBuild brought along by itself comes first.
    """
    plan = plan_of(data)
    tree = Path(plan.tree)
    known, rows = Records(tree).hashes(), _builds(tree)
    found = []
    for node in build_order(plan):
        file = tree / "modules" / node.file
        if node.key in known and file.is_file():
            folder = node.key.removesuffix(".eb").removeprefix(f"{node.name}-")
            software = tree / "software" / node.name / folder
            row = rows.get(node.key, {})
            found.append(Installed(node, known[node.key], file, software, row))
    return plan, _with_companions(plan, found)


def _with_companions(plan: Plan, found: list[Installed]) -> list[Installed]:
    """``found`` with what they require, and before them the packages that are required."""
    companions = _companions(plan, {item.module_file for item in found})
    asked = {file: _ASKS.findall(file.read_text()) for file in companions}

    def below(names: Iterable[str], seen: dict[str, None]) -> dict[str, None]:
        for name in names:
            for file, one in companions.items():
                if str(file).endswith(f"/{name}.lua") and one.content not in seen:
                    below(asked[file], seen)
                    seen[one.content] = None
        return seen

    whole = [
        replace(item, requires=tuple(below(_ASKS.findall(item.module_file.read_text()), {})))
        for item in found
    ]
    used = {content for item in whole for content in item.requires}
    return [*(one for one in companions.values() if one.content in used), *whole]


def _companions(plan: Plan, planned: set[Path]) -> dict[Path, Installed]:
    """Module file → package, for what EasyBuild installed beyond the plan (``--robot``)."""
    tree = Path(plan.tree)
    core = tree / "modules" / "Core" / "mvapich-stack"
    found = {}
    for file in sorted((tree / "modules").rglob("*.lua")):
        if file in planned or file.parent == core or file.name.endswith(".new"):
            continue
        text = file.read_text(errors="replace")
        root = re.search(rf'"{re.escape(str(tree))}/software/([^/"]+)/([^/"]+)"', text)
        easyconfig = tree / "ebfiles_repo" / root[1] / f"{root[1]}-{root[2]}.eb" if root else None
        if root is None or easyconfig is None or not easyconfig.is_file():
            continue
        version = root[2].partition("-")[0]
        name = f"{file.parent.name}/{file.stem}"
        content = hashes.of("companion", hashes.normalised(easyconfig.read_text()), plan.target)
        node = Node(easyconfig.name, "companion", root[1], version, content, module=name)
        found[file] = Installed(node, content, file, tree / "software" / root[1] / root[2], {})
    return found


def _builds(tree: Path) -> dict[str, dict[str, Any]]:
    """The last row of builds.jsonl that tells of a build, by easyconfig."""
    found: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError):
        for line in (tree / "records" / "builds.jsonl").read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):  # cut short by a power cut
                row = json.loads(line)
                if isinstance(row, dict) and row.get("result") == "built":
                    found[str(row.get("easyconfig"))] = row
    return found
