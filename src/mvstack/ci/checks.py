"""What decides each ReFrame check: its file, what that imports, the sources it compiles. Pure."""

import ast
from dataclasses import dataclass
from pathlib import Path

from mvstack.model.meaning import of_paths
from mvstack.test.expected import Check, expected_checks


@dataclass(frozen=True)
class Checked:
    """One file of checks: the hash of all that it is made of, and the tags of its checks.

    ``software`` names the packages that they are of; empty where they need none in the plan.
    """

    file: str
    content: str
    tags: frozenset[str]
    software: frozenset[str] = frozenset()


def read_checks(folder: Path) -> dict[str, Checked]:
    """Every file of checks below ``folder`` by its name; {} where there is no such folder."""
    if not folder.is_dir():
        return {}
    files: dict[Path, list[Check]] = {}
    for check in expected_checks(folder, []):
        files.setdefault(check.file, []).append(check)
    found = {}
    for file, checks in sorted(files.items()):
        name, content = str(file.relative_to(folder)), of_paths(_closure(folder, file), folder)
        tags = frozenset[str]().union(*(one.tags for one in checks))
        found[name] = Checked(name, content, tags, frozenset(one.software for one in checks) - {""})
    return found


def _closure(folder: Path, start: Path) -> list[Path]:
    """``start``, the modules of the folder that it imports, and the sources that these name."""
    found: dict[Path, None] = {}
    todo = [start]
    sources = [path for path in (folder / "src").glob("*") if path.is_file()]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found[path] = None
        names, words = _read(path)
        todo += [one for name in names if (one := folder / f"{name}.py").is_file()]
        found |= dict.fromkeys(one for one in sources if any(one.name in word for word in words))
    return sorted(found)


def _read(path: Path) -> tuple[list[str], list[str]]:
    """The modules that a Python file imports, and its strings."""
    names: list[str] = []
    words: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.append(node.value)
    return names, words
