"""Read a YAML file and keep the line of every value, so that an error can name it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from mvstack.support.errors import InvalidInput, Problem, relative

Place = tuple[str | int, ...]


@dataclass
class YamlFile:
    """The plain data of one file and, for every key and list item, the line that it stands on."""

    path: Path
    data: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Place) -> int:
        """The line of ``place``, or that of the closest thing around it which is written down."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def where(self, place: Place) -> str:
        """``file:line`` for an error message."""
        return f"{relative(self.path)}:{self.line(place)}"


def read_yaml(path: Path) -> YamlFile:
    """Read ``path``; YAML 1.2, duplicate keys refused.

    Raises InvalidInput when the file is not there, not UTF-8 text or not YAML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            Problem(f"cannot be read: {error.strerror}", where=relative(path))
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            Problem(f"is not UTF-8 text: {error.reason} at byte {error.start}", relative(path))
        ) from None
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> YamlFile:
    """Parse ``text`` as if it had been read from ``path``; errors as :func:`read_yaml`."""
    try:
        tree = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        # ruamel adds paragraphs of advice to programmers below the first line
        what = (error.problem or error.context or "not valid YAML").splitlines()[0]
        raise InvalidInput(Problem(f"not valid YAML: {what}", f"{relative(path)}:{line}")) from None
    except (YAMLError, ValueError) as error:
        found = re.search(r"position (\d+)", str(error))
        line = text.count("\n", 0, int(found.group(1))) + 1 if found else 1
        what = str(error).splitlines()[0]
        raise InvalidInput(Problem(f"not valid YAML: {what}", f"{relative(path)}:{line}")) from None
    except RecursionError:
        raise InvalidInput(
            Problem(
                "not valid YAML: nested too deeply",
                relative(path),
                todo="look for brackets that are not closed",
            )
        ) from None
    file = YamlFile(path, None)
    file.data = _plain(tree, (), file.lines)
    return file


def _plain(node: Any, place: Place, lines: dict[Place, int]) -> Any:
    if isinstance(node, CommentedMap):
        result = {}
        for key in node:
            lines[(*place, key)] = node.lc.key(key)[0] + 1 if key in node.lc.data else 1
            result[key] = _plain(node[key], (*place, key), lines)
        return result
    if isinstance(node, CommentedSeq):
        items = []
        for index, item in enumerate(node):
            lines[(*place, index)] = node.lc.item(index)[0] + 1
            items.append(_plain(item, (*place, index), lines))
        return items
    return _scalar(node)


def _scalar(node: Any) -> Any:
    """ruamel's own scalar types (kept for writing back) as Python's."""
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node
