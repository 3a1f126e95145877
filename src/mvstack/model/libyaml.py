"""YAML's nodes from libyaml, many times as fast as in Python: commands read dozens of files."""

import re
from typing import Any, ClassVar

import yaml
from ruamel.yaml.resolver import implicit_resolvers

DEEPEST = 2000
"""Brackets, and columns of a line: libyaml nests as deep as its text, whatever the stack holds."""

UNLIKE = re.compile(
    r"^(%|\.\.\.)|(^|\W)!|[\t\r\x85\u2028\u2029\ufeff]"  # directives, tags, ends of lines
    r"|(?<![\w\\])[&*][\w-]*[:?]"  # an anchor that holds one of these, or ends before it
    r"""|(^|[ "'\]]):[^ \n]|(^|[\[{, ])\?\s*[\]},:#]"""  # in brackets `"a":b`, a key of nothing
    r"|[|>][-+\d]*#|^(---)? *(&[^ \n]+ +)?[|>]"  # comments in text after | and >
    r"|[|>][-+\d]* *(#.*)?\n *\n",  # such text that begins with an empty line
    re.MULTILINE,
)
"""What libyaml takes otherwise, or takes though it is no YAML."""

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
    if deep > DEEPEST or UNLIKE.search(text) or not LOADER:
        return None
    try:
        return Composer(text).get_single_node()
    except (yaml.YAMLError, ValueError):  # the latter for half a character
        return None
