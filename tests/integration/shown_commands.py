"""The commands that README, the guides and the catalogue's pages show."""

from __future__ import annotations

import sys
from functools import cache

from mvstack.support.home import DATA

sys.path.insert(0, str(DATA / "tools" / "catalogue"))
from catalogue import pages
from commands import SHELL, blocks, commands


def commands_of(markdown: str) -> list[str]:
    """The commands of a page, in order."""
    found = [commands(text) for language, text in blocks(markdown) if language in SHELL]
    return [command for block in found for command in block]


@cache
def texts() -> dict[str, str]:
    """The Markdown of README, of each guide and of each page that is made from data."""
    guides = [DATA / "README.md", *sorted((DATA / "docs").rglob("*.md"))]
    return {str(path.relative_to(DATA)): path.read_text() for path in guides} | pages()


@cache
def shown() -> dict[str, list[str]]:
    """Each command, with the pages that show it."""
    found: dict[str, list[str]] = {}
    for name, text in texts().items():
        for command in commands_of(text):
            found.setdefault(command, []).append(name)
    return found
