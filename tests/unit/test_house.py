"""The rules of the house: who imports whom, how large it is, how many parameters a function has.

Run as a program, as `tests/run` does, this file prints the figures.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "mvstack"
# A room imports from itself and from the rooms before it.
ROOMS = (
    *("support", "model", "discover", "plan", "render", "tree", "sources", "cache", "builders"),
    *("recipes", "abi", "fabric", "install", "test", "report", "measure", "diff"),
    *("bundle", "ci", "image", "cli"),
)
# Lines of src by area: rooms and modules of these names, and the rest, which is what all who change
# the project must know. None grows without a reason.
AREAS = {
    "images": ("image", "cluster"),
    "fabric": ("fabric", "wiring"),
    "measure": ("measure", "tuning", "history"),
    "the rest": (),
}
LINES = {"images": 8_313, "fabric": 1_009, "measure": 1_990, "the rest": 25_049}
MODULE = 400  # lines of one module, which has one job
PARAMETERS = 6
IMPORTS = (ast.Import, ast.ImportFrom)


@cache
def modules() -> dict[str, ast.Module]:
    """Every module by its name below mvstack, e.g. ``plan.graph``."""
    return {
        ".".join(path.relative_to(SRC).with_suffix("").parts): ast.parse(path.read_text())
        for path in sorted(SRC.rglob("*.py"))
        if "inside" not in path.parts and path.name != "__main__.py"
    }


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function by its name, those of classes and of functions with theirs before it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{node.name}", node  # type: ignore[misc]
            yield from functions(node, f"{within}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{within}{node.name}.")
        else:
            yield from functions(node, within)


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that are imported anywhere in ``tree``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mvstack."):
            base = str(node.module).removeprefix("mvstack.")
            yield from (
                name if (name := f"{base}.{one.name}") in modules() else base for one in node.names
            )
        elif isinstance(node, ast.ImportFrom) and node.module == "mvstack":
            yield from (one.name for one in node.names if one.name in ROOMS)
        elif isinstance(node, ast.Import):
            yield from (
                one.name.removeprefix("mvstack.")
                for one in node.names
                if one.name.startswith("mvstack.")
            )


def from_later_rooms() -> set[str]:
    return {
        f"{name} → {other}"
        for name, tree in modules().items()
        if (room := name.partition(".")[0]) in ROOMS
        for other in imported(tree)
        if ROOMS.index(other.partition(".")[0]) > ROOMS.index(room)
    }


def cycles() -> set[str]:
    needs = {name: set(imported(tree)) & set(modules()) for name, tree in modules().items()}
    return {f"{name} ↔ {other}" for name in needs for other in needs[name] if name in needs[other]}


def outside_rooms() -> set[str]:
    return {path.name for path in SRC.iterdir() if (path / "__init__.py").is_file()} - set(ROOMS)


def unexplained_imports() -> set[str]:
    """Functions with imports of their own, and no comment there that says why."""
    found = set()
    for name, tree in modules().items():
        lines = (SRC / f"{name.replace('.', '/')}.py").read_text().splitlines()
        for function, node in functions(tree):
            first = next((one.lineno for one in node.body if isinstance(one, IMPORTS)), 0)
            said = "#" in lines[first - 1] or lines[first - 2].lstrip().startswith("#")
            if first and not said:
                found.add(f"{name}.{function}")
    return found


def many_parameters() -> set[str]:
    """Functions with more than PARAMETERS; a command of the command line has its options."""
    found = set()
    for name, tree in modules().items():
        for function, node in functions(tree):
            if name.startswith("cli.") and (
                any("command" in ast.unparse(one) for one in node.decorator_list)
                or any("typer." in ast.unparse(one.annotation or one) for one in node.args.args)
            ):
                continue
            count = len([*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs])
            own = bool(node.args.args) and node.args.args[0].arg in ("self", "cls")
            if count - own > PARAMETERS:
                found.add(f"{name}.{function}")
    return found


def naming_builders() -> set[str]:
    """Modules that compare a builder's name with one that they know."""
    found = set()
    for name, tree in modules().items():
        if name.partition(".")[0] in ("builders", "model"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                words = {one.value for one in sides if isinstance(one, ast.Constant)}
                if words & {"spack", "easybuild"} and "builder" in ast.unparse(node):
                    found.add(name)
    return found


def long_modules() -> set[str]:
    long = {path: len(path.read_text().splitlines()) for path in SRC.rglob("*.py")}
    return {f"{path.relative_to(SRC)} {count}" for path, count in long.items() if count > MODULE}


def sizes() -> dict[str, int]:
    """Lines of each area."""
    found = dict.fromkeys(AREAS, 0)
    for path in SRC.rglob("*.py"):
        own = {path.relative_to(SRC).parts[0], path.stem}
        area = next((name for name, words in AREAS.items() if own & {*words}), "the rest")
        found[area] += len(path.read_text().splitlines())
    return found


# what finds the places that break a rule
RULES: dict[str, Callable[[], set[str]]] = {
    "imports from a later room": from_later_rooms,
    "modules that import each other": cycles,
    "packages that are no room": outside_rooms,
    "imports in functions without a reason": unexplained_imports,
    f"functions of more than {PARAMETERS} parameters": many_parameters,
    "modules that ask for a builder by name": naming_builders,
    f"modules of more than {MODULE} lines": long_modules,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps(rule: str) -> None:
    assert sorted(RULES[rule]()) == [], rule


@pytest.mark.parametrize("area", AREAS)
def test_each_area_is_small(area: str) -> None:
    assert sizes()[area] <= LINES[area]


def main() -> int:
    """Print the figures: 1 where a rule is broken."""
    lines = sizes()
    said = (f"{name} {count:,} of {LINES[name]:,}" for name, count in lines.items())
    print("lines of src:", "; ".join(said))
    found = {rule: sorted(find()) for rule, find in RULES.items()}
    for rule, places in found.items():
        print(f"{rule}: {len(places)}", *places)
    return int(any(found.values()) or any(lines[name] > LINES[name] for name in AREAS))


if __name__ == "__main__":
    sys.exit(main())
