"""Rows of tests/data/ci-changes.yaml: what each edits, and the repository that it is applied to."""

from __future__ import annotations

import compileall
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mvstack.diff.sides import Side, render

TOP = Path(__file__).resolve().parents[2]
TABLE = TOP / "tests" / "data" / "ci-changes.yaml"
# What rendering and graphs read, and what else the table edits.
HELD = (
    "src/mvstack",
    "environments",
    "easyconfigs",
    "modulefiles",
    "spack-repo",
    "tests/reframe",
    "tests/references",
    "images",
    "ci",
    "docs",
    "benchmarks",
    "requirements",
    "README.md",
    "mvstack",
)
NOT_HELD = shutil.ignore_patterns("__pycache__", "rendered", "results")


@dataclass(frozen=True)
class Row:
    """One change, and what is expected of it by partition (a name or a pattern)."""

    name: str
    why: str
    edit: list[dict[str, Any]]
    expect: dict[str, dict[str, Any]]
    systems: list[str]
    says: list[str] = field(default_factory=list)
    pending: str = ""

    @property
    def together(self) -> bool:
        """Whether it may be tried with others: it changes nothing, and no other loses by it."""
        return not self.expect and not any({"cut_from", "remove"} & {*edit} for edit in self.edit)


def read_rows() -> list[Row]:
    """The table."""
    data = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return [Row(**{"systems": data["systems"], **row}) for row in data["changes"]]


class Repository:
    """A copy of this repository below ``folder``, of which each edited one is a tree of links."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = folder / "base"
        for name in HELD:
            source, target = TOP / name, self.base / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=NOT_HELD)
            else:
                shutil.copy2(source, target)
        # once, and not in each process that renders
        compileall.compile_dir(self.base / "src", quiet=1)

    def unedited(self, systems: Iterable[str]) -> Side:
        """The repository as it is, rendered."""
        side = Side("before", self.base, self.folder / "before")
        render(side, sorted(set(systems)))
        return side

    def edited(self, rows: list[Row]) -> Side:
        """A copy with the edits of ``rows`` in it, rendered by its own code."""
        place = self.folder / "edited" / (rows[0].name if len(rows) == 1 else "together")
        shutil.copytree(self.base, place / "tree", copy_function=os.link)
        for row in rows:
            for edit in row.edit:
                _apply(place / "tree", edit)
        side = Side("after", place / "tree", place / "rendered")
        there = place / "tree" / "environments" / "systems"
        names = {name for row in rows for name in row.systems}
        known = {path.stem for path in there.glob("*.yaml")}
        gone = {Path(edit["file"]).stem for row in rows for edit in row.edit if "remove" in edit}
        render(side, sorted(names - (gone - known)))
        return side


def _apply(tree: Path, edit: dict[str, Any]) -> None:
    path = tree / edit["file"]
    if "remove" in edit:
        path.unlink()
        return
    if "add" in edit or "copy" in edit:
        assert not path.exists(), f"{edit['file']} is there already"
        text = edit["add"] if "add" in edit else (tree / edit["copy"]).read_text()
        for old, new in edit.get("replace", {}).items():
            text = _replaced(text, old, new, edit["copy"])
        path.parent.mkdir(parents=True, exist_ok=True)
    else:
        text = path.read_text()
        if "append" in edit:
            text += edit["append"]
        elif "cut_from" in edit:
            text = text[: text.index(edit["cut_from"])]
        else:
            text = _replaced(text, edit["old"], edit["new"], edit["file"])
        assert text != path.read_text(), f"{edit['file']} stays as it is"
        path.unlink()  # a link: the file of the unedited repository stays as it is
    path.write_text(text)


def _replaced(text: str, old: str, new: str, file: str) -> str:
    assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
    return text.replace(old, new)
