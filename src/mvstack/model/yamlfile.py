"""Read a YAML file and keep the line of every value, so that an error can name it."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode

from mvstack.model.libyaml import composed
from mvstack.support.errors import InvalidInput, relative
from mvstack.support.files import read_text

Place = tuple[str | int, ...]

OF_YAML = "tag:yaml.org,2002:"
TAGS = frozenset(
    OF_YAML + one
    for one in ("null", "bool", "int", "float", "str", "seq", "map", "merge", "timestamp")
)
"""What YAML makes of plain text; a tag such as !!python/object is somebody's trick."""

REPEATED = 1000
"""How many values a file's aliases may repeat."""

LARGEST = 1 << 20
"""Characters that a file may have; reading one of so many takes a second or two."""


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


def read_yaml(path: Path, most: int = LARGEST) -> YamlFile:
    """Read ``path``; YAML 1.2, duplicate keys refused.

    Raises InvalidInput when the file is not there, not UTF-8 text, not YAML, or has more than
    ``most`` characters.
    """
    return parse_yaml(read_text(path), path, most)


@lru_cache(maxsize=256)
def parse_yaml(text: str, path: Path, most: int = LARGEST) -> YamlFile:
    """Parse ``text`` as if it had been read from ``path``; errors as :func:`read_yaml`.

    The same text is parsed once, so nobody may write into what comes back.
    """
    if len(text) > most:
        raise InvalidInput(
            "is larger than a file that a person wrote",
            relative(path),
            found=f"{len(text):,} characters",
            allowed=f"at most {most:,}",
            todo="look whether it is the right file",
        )
    yaml = YAML(typ="safe", pure=True)
    # what is wrong, ruamel's parser says best, also where libyaml reads on and a value is refused
    with suppress(InvalidInput, YAMLError, RecursionError):
        if node := composed(text):
            return _read(node, path, yaml)
    try:
        return _read(yaml.compose(text), path, yaml)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # ruamel adds paragraphs of advice to programmers below the first line
        what = (error.problem or error.context or "not valid YAML").splitlines()[0]
        todo = "look there and a line above for what is not closed, a missing colon or quote"
        if "\\t" in what:
            todo = "indent with spaces, not tabs"
        raise _not_yaml(path, what, mark.line + 1 if mark else 1, todo) from None
    except (YAMLError, ValueError) as error:
        found = re.search(r"position (\d+)", str(error))
        line = text.count("\n", 0, int(found.group(1))) + 1 if found else 1
        raise _not_yaml(path, str(error).splitlines()[0], line) from None
    except RecursionError:
        todo = "look for brackets that are not closed"
        raise _not_yaml(path, "nested too deeply", 1, todo) from None


def _read(node: Any, path: Path, yaml: YAML) -> YamlFile:
    file = YamlFile(path, None)
    file.data = _Reader(file, yaml).value(node, ()) if node is not None else None
    return file


def _not_yaml(path: Path, what: str, line: int, todo: str = "") -> InvalidInput:
    return InvalidInput(f"not valid YAML: {what}", f"{relative(path)}:{line}", todo=todo)


class _Reader:
    """Turns YAML's nodes into plain data and notes their lines.

    Aliases may repeat REPEATED values in all, so that ten lines cannot stand for a billion.
    """

    def __init__(self, file: YamlFile, yaml: YAML) -> None:
        self.file, self.yaml = file, yaml
        self.seen: set[int] = set()
        self.open: set[int] = set()
        self.repeated = 0

    def value(self, node: Any, place: Place) -> Any:
        line = node.start_mark.line + 1
        if id(node) in self.open:
            raise self.no("an anchor that holds its own alias", self.file.line(place))
        self.repeated += id(node) in self.seen
        if self.repeated > REPEATED:
            what = f"its aliases repeat more than {REPEATED:,} values"
            raise self.no(what, self.file.line(place[:1]), "write the values out")
        if (tag := str(node.tag)) not in TAGS:
            what = f"the tag {tag.removeprefix(OF_YAML)} is not used here"
            raise self.no(what, line, "leave out what begins with !")
        self.seen.add(id(node))
        self.open.add(id(node))
        try:
            if node.id == "mapping":
                return self.mapping(node, place)
            if node.id == "sequence":
                return [self.item(one, (*place, at)) for at, one in enumerate(node.value)]
            if tag == OF_YAML + "str":
                return node.value
            plain = ScalarNode(tag, node.value, node.start_mark, node.end_mark)
            return self.yaml.constructor.construct_object(plain)
        except (ValueError, OverflowError) as error:
            raise self.no(str(error).splitlines()[0], line) from None
        finally:
            self.open.discard(id(node))

    def item(self, node: Any, place: Place) -> Any:
        self.file.lines[place] = node.start_mark.line + 1
        return self.value(node, place)

    def mapping(self, node: Any, place: Place) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise self.no("a key that is a list or a mapping", line)
            if str(key_node.tag) == OF_YAML + "merge":
                whole = self.value(value_node, place)
                for one in whole if isinstance(whole, list) else [whole]:
                    if not isinstance(one, dict):
                        raise self.no("<< takes mappings only", line)
                    merged = {**one, **merged}
                continue
            key = self.value(key_node, place)
            if key in result:
                first = f"keep one of the two; the other is on line {self.file.line((*place, key))}"
                raise self.no(f'found duplicate key "{key}"', line, first)
            self.file.lines[(*place, key)] = line
            result[key] = self.value(value_node, (*place, key))
        return {**merged, **result}

    def no(self, what: str, line: int, todo: str = "") -> InvalidInput:
        return _not_yaml(self.file.path, what, line, todo)
