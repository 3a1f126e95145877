"""Files of recipes, parsed: what they import, their constants, functions and classes."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.recipes.values import Unread, value_of
from mvstack.support.errors import InvalidInput, Problem, relative

OURS = "spack_repo.mvapich_stack"


@dataclass
class Module:
    """A parsed file: ``names`` are its constants, ``imports`` where its other names come from.

    Functions and classes come with the file that they are of, whose names they see.
    """

    path: Path
    text: str
    tree: ast.Module
    names: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, tuple[Module, ast.FunctionDef]] = field(default_factory=dict)
    classes: dict[str, tuple[Module, ast.ClassDef]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


def module(path: Path) -> Module:
    """The file at ``path``. Raises InvalidInput, with the line, when it is no Python."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (SyntaxError, ValueError, OSError) as error:
        line = getattr(error, "lineno", None)
        where = f"{relative(path)}:{line}" if line else relative(path)
        raise InvalidInput(Problem(f"it cannot be read as Python: {error}", where)) from None
    found = Module(path, text, tree)
    for statement in tree.body:
        _top(found, statement)
    return found


def _top(found: Module, statement: ast.stmt) -> None:
    match statement:
        case ast.ImportFrom():
            _import(found, statement)
        case ast.Import():
            found.imports |= {one.asname: one.name for one in statement.names if one.asname}
        case ast.FunctionDef(name=name):
            found.functions[name] = (found, statement)
        case ast.ClassDef(name=name):
            found.classes[name] = (found, statement)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            with suppress(Unread):
                found.names[name] = value_of(value, found.names)


def _import(found: Module, statement: ast.ImportFrom) -> None:
    """Names from a file of this repository are read; of others only the origin is kept."""
    origin = statement.module or ""
    path = _beside(found.path, origin, statement.level)
    other = module(path) if path is not None and path.is_file() else None
    for alias in statement.names:
        name = alias.asname or alias.name
        found.imports[name] = f"{origin}.{alias.name}" if origin else alias.name
        if other is None:
            continue
        if alias.name in other.names:
            found.names[name] = other.names[alias.name]
        if alias.name in other.functions:
            found.functions[name] = other.functions[alias.name]
        if alias.name in other.classes:
            found.classes[name] = other.classes[alias.name]


def _beside(path: Path, origin: str, level: int) -> Path | None:
    """The file that ``from <dots><origin> import …`` in ``path`` means; None for Spack's own."""
    if level:
        base = path.parents[level - 1]
        return base.joinpath(*origin.split(".")).with_suffix(".py") if origin else None
    if origin.startswith(OURS + "."):
        root = next((one for one in path.parents if one.name == "mvapich_stack"), None)
        if root is not None:
            return root.joinpath(*origin.removeprefix(OURS + ".").split(".")).with_suffix(".py")
    return None
