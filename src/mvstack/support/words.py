"""The nearest valid word to one that was not understood."""

from collections.abc import Iterable
from difflib import get_close_matches

TAKEN = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
"""What some reader of YAML takes for something other than text."""


def nearest(found: str, allowed: Iterable[str]) -> str:
    """The word of ``allowed`` that is closest to ``found``, or "" when none is close."""
    words = {word.lower(): word for word in allowed}
    close = get_close_matches(found.lower(), list(words), n=1, cutoff=0.6)
    return words[close[0]] if close else ""


def listed(words: Iterable[str]) -> str:
    """Words for an error message: in order, separated by commas."""
    return ", ".join(words)


def few(names: Iterable[str], most: int = 6) -> str:
    """The first of many names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
