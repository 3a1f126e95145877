"""The numbers that pages show: what checks measured here, and what others published."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from drawings import bars

from mvstack.model.yamlfile import parse_yaml
from mvstack.report.seen import Row
from mvstack.support.home import DATA

FIGURE = re.compile(r"(?P<name>.+) (?P<value>[\d.e+-]+) (?P<unit>\S+) on (?P<ranks>\d+) ranks")
SYMBOL = re.compile(r"[A-Z][A-Z_]*")


@dataclass(frozen=True)
class Check:
    """What the check of a package runs and measures; its file says so."""

    file: str
    title: str
    does: str
    ranks: str
    figure: str
    inputs: tuple[tuple[str, str], ...]


@cache
def checks() -> dict[str, list[Check]]:
    """The checks of packages, by the package's name."""
    found: dict[str, list[Check]] = {}
    for path in sorted((DATA / "tests" / "reframe").glob("apps/*.py")):
        tree = ast.parse(path.read_text())
        functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
        measured = {one.name: ast.get_docstring(one) or "" for one in functions}
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and (name := _given(node.body, "software")):
                found.setdefault(ast.literal_eval(name), []).append(
                    Check(
                        str(path.relative_to(DATA)),
                        " ".join((ast.get_docstring(tree) or "").split()),
                        " ".join((ast.get_docstring(node) or "").split()),
                        _ranks(node),
                        " ".join(measured.get("figures", "").split()),
                        tuple(_inputs(tree)),
                    )
                )
    return found


def _given(body: list[ast.stmt], name: str) -> ast.expr | None:
    for one in body:
        if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == name:
            return one.value
    return None


def _ranks(node: ast.ClassDef) -> str:
    value = _given(node.body, "ranks")
    return ast.unparse(value).removeprefix("parameter([").removesuffix("])") if value else ""


def _inputs(tree: ast.Module) -> Iterable[tuple[str, str]]:
    """The constants of several lines: what is written into files for the program."""
    for one in tree.body:
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant):
            name, text = ast.unparse(one.targets[0]), one.value.value
            if SYMBOL.fullmatch(name) and isinstance(text, str) and text.count("\n") > 2:
                yield name.lower(), text


def measured(rows: Iterable[Row]) -> list[str]:
    """A drawing for each figure of merit that more than one build was measured by."""
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for row in rows:
        if found := FIGURE.fullmatch(row.figure):
            label = f"{row.version} over {row.mpi}, {found['ranks']} ranks"
            group = groups.setdefault((found["name"], found["unit"]), [])
            group.append((label, float(found["value"])))
    drawn = [bars(name, unit, group) for (name, unit), group in groups.items()]
    return [one for one in drawn if one]


@cache
def published() -> tuple[dict[str, Any], ...]:
    """What talks and documents say of each system's speed: one row a figure."""
    found = []
    for path in sorted((DATA / "tests" / "references").glob("*.yaml")):
        for row in parse_yaml(path.read_text(), path).data or []:
            found += [{**row, **one, "system": path.stem} for one in row.get("figures") or [{}]]
    return tuple(found)


def compared(rows: Iterable[dict[str, Any]]) -> list[str]:
    """A drawing for each metric of a benchmark that was measured more than once."""
    groups: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for row in rows:
        if row.get("kind") == "measured" and isinstance(row.get("value"), (int, float)):
            of = ", ".join(f"{key} {value}" for key, value in (row.get("of") or {}).items())
            made = f"{row['system']}/{row['partition']}, {row.get('library', '')} "
            made += str(row.get("version") or "")
            key = (row.get("benchmark", ""), row["metric"], row.get("unit") or "")
            groups.setdefault(key, []).append(
                (f"{made}: {of}" if of else made.strip(), row["value"])
            )
    drawn = [bars(f"{key[0]} {key[1]}", key[2], group) for key, group in groups.items()]
    return [one for one in drawn if one]
