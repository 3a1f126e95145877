"""The commands that pages show, and what is known of each: commands.yaml has the rows.

A command without a row is run by tests/integration/test_catalogue_commands.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent, indent

import yaml

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```\n?", re.M | re.S
)
SHELL = ("sh", "bash", "console")


@dataclass(frozen=True)
class Row:
    """What is known of the commands that begin as ``match``, a regular expression, says.

    ``unrun`` is why no test runs them, and stands on the page. ``by`` is the test that runs them,
    in which ``words`` are found.
    """

    match: str
    unrun: str = ""
    by: str = ""
    words: str = ""


@cache
def rows() -> tuple[Row, ...]:
    """The rows of commands.yaml."""
    data = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())
    unrun = [Row(match, why) for why, found in data["unrun"].items() for match in found]
    return (*unrun, *(Row(**one) for one in data["run"]))


def row_of(command: str) -> Row | None:
    """The first row that fits a command."""
    return next((row for row in rows() if re.match(row.match, command)), None)


def blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """The language and text of each code block."""
    for one in BLOCK.finditer(markdown):
        yield one["language"], dedent(one["text"])


def commands(text: str) -> list[str]:
    """The commands of a block, without prompts and comments, each on one line."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    bare = [re.sub(r"(^|\s+)#.*", "", line.removeprefix("$ ")).strip() for line in lines]
    return [line for line in bare if line]


def marked(markdown: str) -> str:
    """``markdown`` with a line below each block that says which of it no test runs, and why."""

    def with_mark(block: re.Match[str]) -> str:
        shown = commands(block["text"]) if block["language"] in SHELL else []
        reasons: dict[str, list[str]] = {}
        for command in shown:
            if (row := row_of(command)) and row.unrun:
                reasons.setdefault(row.unrun, []).append(command)
        if not reasons:
            return block[0]
        if all(row_of(one) and row_of(one).unrun for one in shown):  # type: ignore[union-attr]
            said = "; ".join(reasons)
        else:
            said = "; ".join(f"{_named(of)}: {why}" for why, of in reasons.items())
        return block[0] + indent(f"\nNot run by a test: {said}.\n{{: .unrun }}\n", block["indent"])

    return BLOCK.sub(with_mark, markdown)


def _named(of: list[str]) -> str:
    """The commands, each by its first words."""
    names = dict.fromkeys(" ".join(command.split()[:3]) for command in of)
    return ", ".join(f"`{name}`" for name in names)
