"""Make templates for a current Packer readable for Packer 1.6.6. Pure.

Debian 12's Packer is the newest that can be had where only package archives are reached. What it
does not know stands in images/modern.yaml and nowhere else: an argument or block of a source type.
"""

from __future__ import annotations

import re

from pydantic import Field

from mvstack.model.base import Strict, validated
from mvstack.model.load import REPOSITORY
from mvstack.model.yamlfile import read_yaml

TEMPLATES = REPOSITORY / "images"
_SOURCE = re.compile(r'source\s+"([^"]+)"\s+"[^"]+"\s*\{')
_ITEM = re.compile(r"\s*([a-z_0-9]+)\s*([={])")


class Modern(Strict):
    """images/modern.yaml: files, and by source arguments and blocks, that 1.6.6 does not know."""

    files: list[str]
    arguments: dict[str, list[str]] = Field(default_factory=dict)
    blocks: dict[str, list[str]] = Field(default_factory=dict)


def modern() -> Modern:
    """What is newer than 1.6.6. Raises InvalidInput with file and line for what is wrong."""
    return validated(Modern, read_yaml(TEMPLATES / "modern.yaml"))


def templates() -> dict[str, str]:
    """The templates of this repository, by name."""
    return {path.name: path.read_text() for path in sorted(TEMPLATES.glob("*.pkr.hcl"))}


def strip(texts: dict[str, str], newer: Modern) -> dict[str, str]:
    """``texts`` without what ``newer`` names; all else byte by byte as it was."""
    return {name: _without(text, newer) for name, text in texts.items() if name not in newer.files}


def _without(text: str, newer: Modern) -> str:
    kept: list[str] = []
    source, depth, skipping = "", 0, 0
    for line in text.splitlines(keepends=True):
        code = _code(line)
        change = sum(code.count(mark) for mark in "{[(") - sum(code.count(mark) for mark in "}])")
        if skipping:
            skipping += change
            depth += change
            continue
        if depth == 0 and (found := _SOURCE.match(line)):
            source = found.group(1)
        elif depth == 1 and source and (item := _ITEM.match(line)):
            names = newer.arguments if item.group(2) == "=" else newer.blocks
            if item.group(1) in names.get(source, []):
                skipping = change
                depth += change
                continue
        depth += change
        if depth == 0:
            source = ""
        kept.append(line)
    return "".join(kept)


def _code(line: str) -> str:
    """A line without strings and comments, so that only brackets that count are counted."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    return re.sub(r"(#|//).*", "", bare)
