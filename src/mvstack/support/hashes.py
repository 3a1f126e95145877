"""Content hashes of a plan's nodes: what decides a build, comments normalised away."""

import ast
import hashlib
import json
import sys
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

# What is hashed on one Python is looked for on another: 3.13 leaves out lists that are empty.
_AS_IN_3_11: dict[str, Any] = {"show_empty": True} if sys.version_info >= (3, 13) else {}


@lru_cache(maxsize=512)  # all partitions stand on the same recipes and easyblocks
def normalised(text: str, without: str = "") -> str:
    """Python text (an easyconfig, an easyblock) without comments, docstrings and layout.

    Text that is not Python is returned as it is. What is assigned to the name ``without`` is left
    out.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # the latter for a null byte
        return text
    if without:
        tree.body = [node for node in tree.body if not assigns(node, without)]
    for node in ast.walk(tree):
        vars(node).pop("type_params", None)  # new in 3.12
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            documented = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[1:] if documented else node.body
    return ast.dump(tree, **_AS_IN_3_11)


@lru_cache(maxsize=512)
def declared(text: str) -> str:
    """A recipe's text without the methods and patches of its classes, and what they alone use."""
    tree = ast.parse(text)
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        node.body = [one for one in node.body if not isinstance(one, ast.FunctionDef)]
        node.body = [one for one in node.body if not ast.unparse(one).startswith("patch(")]
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    used = {one.id for one in names if isinstance(one.ctx, ast.Load)}
    tree.body = [
        node
        for node in tree.body
        if not isinstance(node, ast.Assign) or used & {ast.unparse(one) for one in node.targets}
    ]
    return normalised(ast.unparse(tree))


def assigns(node: ast.stmt, name: str) -> bool:
    """Whether ``node`` gives a value to ``name``, and to nothing else."""
    return isinstance(node, ast.Assign) and [
        target.id for target in node.targets if isinstance(target, ast.Name)
    ] == [name]


def of(*parts: Any) -> str:
    """SHA-256 of JSON-able parts, in hexadecimal."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def of_files(paths: Iterable[Path]) -> str:
    """SHA-256 of Python files by normalised content, and of others byte by byte."""
    return of(
        [
            normalised(path.read_text()) if path.suffix in (".py", ".eb") else path.read_text()
            for path in sorted(paths)
        ]
    )


K = TypeVar("K", bound=Hashable)


def reached(starts: Iterable[K], below: Callable[[K], Iterable[K]]) -> dict[K, None]:
    """``starts`` and all that they lead to, each once; ``below`` says where one leads at once."""
    found: dict[K, None] = {}
    todo = list(starts)
    while todo:
        one = todo.pop()
        if one not in found:
            found[one] = None
            todo += below(one)
    return found
