"""Which versions the recipes call deprecated, read from their syntax trees: no lock file says so.

Read are ``version("1.2", …, deprecated=True)`` and versions below
``with default_args(deprecated=True):``, in the recipes of the packages that a lock file holds;
nothing of Spack is imported or run.
"""

import ast
import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mvstack.model.constraint import sort_key
from mvstack.model.spack_lock import Lock


@dataclass(frozen=True)
class Standing:
    """The versions of one recipe: deprecated ones, and the others, the newest first."""

    deprecated: frozenset[str]
    current: tuple[str, ...]


def deprecated_versions(lock: Lock, repos: Mapping[str, Path]) -> dict[tuple[str, str], Standing]:
    """The standing of every package of ``lock`` whose recipe is there, by namespace and name.

    ``repos`` maps a namespace to its folder, the one that holds ``packages/``. A recipe that is not
    there or not readable is left out: that a package cannot be found is the solver's to say.
    """
    names = sorted({(node.namespace, node.name) for node in lock.nodes.values()})
    found = {
        (namespace, name): _standing(name, repos[namespace])
        for namespace, name in names
        if namespace in repos
    }
    return {key: known for key, known in found.items() if known}


def module_name(package: str) -> str:
    """The folder of a package in a repository of Spack's package API v2: ``7zip`` → ``_7zip``."""
    name = package.replace("-", "_")
    return f"_{name}" if re.match(r"[0-9]", name) or keyword.iskeyword(name) else name


def standing(recipe: str) -> Standing:
    """The versions that the text of a ``package.py`` declares."""
    versions = list(_versions(ast.parse(recipe).body, False))
    deprecated = frozenset(version for version, bad in versions if bad)
    current = {version for version, bad in versions if not bad} - deprecated
    return Standing(deprecated, tuple(sorted(current, key=sort_key, reverse=True)))


def _versions(body: list[ast.stmt], inherited: bool) -> Iterator[tuple[str, bool]]:
    for statement in body:
        if isinstance(statement, ast.Expr) and _called(statement.value) == "version":
            call = statement.value
            assert isinstance(call, ast.Call)
            if call.args and isinstance(call.args[0], ast.Constant):
                own = _deprecated(call)
                yield str(call.args[0].value), inherited if own is None else own
        elif isinstance(statement, ast.With):
            within = inherited
            for item in statement.items:
                if _called(item.context_expr) == "default_args":
                    given = _deprecated(item.context_expr)
                    within = within if given is None else given
            yield from _versions(statement.body, within)
        elif isinstance(statement, (ast.ClassDef, ast.If, ast.For)):
            yield from _versions(statement.body, inherited)
            yield from _versions(getattr(statement, "orelse", []), inherited)


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _deprecated(call: ast.expr) -> bool | None:
    """The value of ``deprecated=`` in a call, None when it is not given."""
    for given in call.keywords if isinstance(call, ast.Call) else ():
        if given.arg == "deprecated" and isinstance(given.value, ast.Constant):
            return bool(given.value.value)
    return None


def _standing(package: str, repository: Path) -> Standing | None:
    """None where there is no recipe that can be read."""
    recipe = repository / "packages" / module_name(package) / "package.py"
    try:
        return standing(recipe.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
