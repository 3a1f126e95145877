"""Patterns of paths in data files and rules: ``*`` within a name, ``**`` across names."""

import re
from collections.abc import Iterable
from functools import cache

_PARTS = re.compile(r"/\*\*$|/\*\*(?=/)|\*+|\?|[^*?/]+|/")
_AS = {"*": "[^/]*", "**": ".*", "?": "[^/]"}


@cache
def matcher(pattern: str) -> re.Pattern[str]:
    """A compiled ``pattern``, to be used with ``fullmatch`` on an absolute path.

    ``*`` and ``?`` stay within one name. ``/**`` at the end is everything below a folder and not
    the folder itself; ``/**/`` inside is any number of folders, none included.
    """
    text = ""
    for found in _PARTS.finditer(pattern):
        part = found[0]
        if part == "/**":
            text += "/.+" if found.end() == len(pattern) else "(?:/.+)?"
        else:
            text += _AS.get(part, re.escape(part))
    return re.compile(text, re.DOTALL)


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """A compiled pattern that matches what any of ``patterns`` matches."""
    return re.compile("|".join(f"(?:{matcher(one).pattern})" for one in patterns), re.DOTALL)
