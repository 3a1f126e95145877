"""Read package.py files by their syntax tree: a small interpreter of Spack's directives.

It follows what recipes do at class level: directives, ``with when(…)``, ``with default_args(…)``,
loops over constants, constants and classes from files beside it. It runs nothing of the recipe.
What it cannot tell is kept in ``Recipe.unread``, and the checks complain of it: nothing is skipped
silently.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

from mvstack.recipes.directives import Body
from mvstack.recipes.model import Recipe, class_for
from mvstack.recipes.modules import Module, module
from mvstack.support.errors import InvalidInput, Problem, relative
from mvstack.support.home import DATA

NAMESPACE = "mvapich_stack"
RECIPES = DATA / "spack-repo" / "spack_repo" / NAMESPACE / "packages"


def read_recipes(folder: Path = RECIPES) -> list[Recipe]:
    """Every recipe below ``folder``, sorted. Raises InvalidInput with all that do not parse."""
    found, problems = [], []
    for path in sorted(folder.glob("*/package.py")):
        try:
            found.append(read_recipe(path))
        except InvalidInput as error:
            problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return found


def read_recipe(path: Path) -> Recipe:
    """The recipe in ``path``. Raises InvalidInput when it does not parse or holds no package."""
    home = module(path)
    node = _package_class(home)
    body = Body(home)
    body.take(node)
    doc = ast.get_docstring(node) or ""
    return Recipe(
        path=path,
        folder=path.parent.name,
        class_name=node.name,
        line=node.lineno,
        docstring=doc,
        comments=_comments(home.text),
        builtin=body.builtin,
        helpers=tuple(body.helpers),
        url=str(body.constants.get("url") or ""),
        manual=bool(body.constants.get("manual_download", False)),
        licence=body.licence,
        versions=tuple(body.versions),
        variants=tuple(body.variants),
        dependencies=tuple(body.dependencies),
        conflicts=tuple(body.conflicts),
        provides=tuple(body.provides),
        patches=tuple(body.patches),
        methods=frozenset(body.methods),
        unread=tuple(body.unread),
    )


def _package_class(home: Module) -> ast.ClassDef:
    """The class that Spack takes: the one named after the folder, else the last with bases."""
    classes = [one for one in home.tree.body if isinstance(one, ast.ClassDef)]
    named = [one for one in classes if one.name == class_for(home.path.parent.name)]
    if named or classes:
        return (named or classes)[-1]
    raise InvalidInput(
        Problem(
            "there is no package class in it",
            relative(home.path),
            todo=f"write `class {class_for(home.path.parent.name)}(…)`",
        )
    )


def _comments(text: str) -> str:
    """All comments of a file, for the checks that look for a reason."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(one.string.lstrip("# ") for one in tokens if one.type == tokenize.COMMENT)
