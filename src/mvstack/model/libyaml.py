"""YAML's nodes from libyaml, many times as fast as in Python: commands read dozens of files."""

import re
from typing import Any, ClassVar

import yaml
from ruamel.yaml.resolver import implicit_resolvers

DEEPEST = 2000
"""Brackets, and columns of a line: libyaml nests as deep as its text, whatever the stack holds."""

UNLIKE = re.compile(
    r"\n(%|\.\.\.|(---)? *(&[^ \n]+ +)?[|>])|!(?<!\w!)"  # directives, text that begins here, tags
    r"|\t|\r|\x85|\u2028|\u2029|\ufeff"  # ends of lines
    r"|&(?<![\w\\]&)[\w-]*[:?]|\*(?<![\w\\]\*)[\w-]*[:?]"  # an anchor that ends before one of these
    r"""|:(?<![^\n "'\]]:)[^ \n]|\?(?<![^\n\[{, ]\?)\s*[\]},:#]"""  # in brackets "a":b, no key
    r"|\|[-+\d]*(#| *(#.*)?\n *\n)|>[-+\d]*(#| *(#.*)?\n *\n)",  # | and >, a comment, an empty line
)
"""What libyaml takes otherwise, or takes though it is no YAML, after a newline.

Each begins with a character and not with a set: so Python looks from one of them to the next.
"""

LOADER: Any = getattr(yaml, "CSafeLoader", None)


class Composer(LOADER or yaml.SafeLoader):  # type: ignore[misc]
    """libyaml's parser with the plain scalars of YAML 1.2."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


for _versions, _tag, _pattern, _first in implicit_resolvers:
    if (1, 2) in _versions:
        Composer.add_implicit_resolver(str(_tag), _pattern, _first)


def composed(text: str) -> Any:
    """The node of ``text`` as YAML 1.2; None if there is none, or Python's parser has to look."""
    deep = max(text.count("[") + text.count("{"), *map(len, text.split("\n")))
    if deep > DEEPEST or UNLIKE.search(f"\n{text}") or not LOADER:
        return None
    try:
        return Composer(text).get_single_node()
    except (yaml.YAMLError, ValueError):  # the latter for half a character
        return None
