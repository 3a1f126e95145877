"""What of a lock file is installed and what is not: read from files, without starting Spack."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mvstack.support.errors import Missing, Problem


@dataclass(frozen=True)
class Node:
    """One concrete package of a lock file."""

    hash: str
    name: str
    version: str
    external: bool

    @property
    def short(self) -> str:
        """``hpcc@1.5.0/abcdefg``."""
        return f"{self.name}@{self.version}/{self.hash[:7]}"


@dataclass(frozen=True)
class Graph:
    """The concrete packages of a lock file by hash."""

    specs: dict[str, Any]
    roots: list[dict[str, str]]

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Every package; externals included."""
        return {
            key: Node(key, row["name"], str(row.get("version", "")), "external" in row)
            for key, row in self.specs.items()
        }

    @property
    def built(self) -> list[Node]:
        """Those that a builder installs."""
        return [node for node in self.nodes.values() if not node.external]

    def pending(self, installed: Container[str], offered: Container[str] = ()) -> list[Node]:
        """What must be installed so that every root is, what it stands on first.

        What only a build needs counts as long as that build is to be done, so not for what is
        ``offered`` by a cache.
        """
        found: dict[str, None] = {}
        seen: set[str] = set()

        def visit(key: str) -> None:
            if key in seen:
                return
            seen.add(key)
            there = key in installed or self.nodes[key].external
            for row in self.specs[key].get("dependencies", ()):
                kinds = set(row.get("parameters", {}).get("deptypes", ("link",)))
                if not (there or key in offered) or kinds & {"link", "run"}:
                    visit(row["hash"])
            if not there:
                found[key] = None

        for root in self.roots:
            visit(root["hash"])
        return [self.nodes[key] for key in found]


def read_graph(lock: Path) -> Graph:
    """The graph of a spack.lock. Raises Missing when it is damaged: deleting it heals that."""
    try:
        data = json.loads(lock.read_text())
        graph = Graph(data["concrete_specs"], data["roots"])
        graph.pending(())  # every package that a root or another one names is there
        return graph
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        lacking = f"it lacks {error}" if isinstance(error, LookupError) else str(error)
        raise Missing(
            Problem(
                f"this is no lock file: {lacking}",
                str(lock),
                todo="remove it; the same command concretizes anew",
            )
        ) from None


def installed(store: Path) -> dict[str, Path]:
    """What Spack's database of ``store`` calls installed: hash → prefix; {} when there is none."""
    try:
        rows = json.loads((store / ".spack-db" / "index.json").read_text())["database"]["installs"]
        return {key: Path(row["path"]) for key, row in rows.items() if row.get("installed")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
