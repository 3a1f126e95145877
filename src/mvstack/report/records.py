"""Reads the records of a tree: whatever is there, and a notice for whatever is not as it should be.

A record may be cut short by a power failure or edited by hand. Nothing here raises for what a file
holds; each thing that cannot be used is told once, with file, line and what to do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mvstack.report.data import Notice
from mvstack.support.units import clean

Row = dict[str, Any]


class Reader:
    """Reads records below one folder and keeps the notices."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notices: list[Notice] = []

    def notice(self, where: str, message: str, todo: str = "") -> None:
        """Keep one thing that a reader of the report must know about the records."""
        self.notices.append(Notice("record", clean(where), clean(message), todo))

    def document(self, name: str, todo: str) -> Row:
        """One JSON object; {} with a notice when it is missing or damaged."""
        text = self._text(name, todo)
        if text is None:
            return {}
        value = self._parse(text, name, todo)
        return value if value is not None else {}

    def rows(self, name: str, todo: str) -> list[Row]:
        """The objects of a JSON Lines file, less the lines that cannot be read."""
        text = self._text(name, todo)
        if text is None:
            return []
        found = []
        for count, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                row = self._parse(line, f"{name}:{count}", "the other lines are used as they are")
                if row is not None:
                    found.append(row)
        return found

    def documents(self, folder: str, todo: str) -> list[tuple[str, Row]]:
        """Every ``*.json`` of a folder that can be read, by file name."""
        try:
            names = sorted(path.name for path in (self.folder / folder).glob("*.json"))
        except OSError as error:
            self.notice(folder, f"cannot be read: {error.strerror or error}", todo)
            return []
        if not names:
            self.notice(f"{folder}/", "holds no results: no check has been run", todo)
        read = [(name, self.document(f"{folder}/{name}", todo)) for name in names]
        return [(name, row) for name, row in read if row]

    def _text(self, name: str, todo: str) -> str | None:
        try:
            raw = (self.folder / name).read_bytes()
        except FileNotFoundError:
            self.notice(name, "is not there", todo)
            return None
        except OSError as error:
            self.notice(name, f"cannot be read: {error.strerror or error}", todo)
            return None
        return raw.decode("utf-8", "replace")

    def _parse(self, text: str, where: str, todo: str) -> Row | None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            message = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            self.notice(where, f"is damaged ({message})", todo)
            return None
        if not isinstance(value, dict):
            self.notice(where, f"is damaged (an object expected, found {_kind(value)})", todo)
            return None
        return value


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def text(row: Row, key: str) -> str:
    """A field as cleaned text; "" when it is absent, null, or no single value."""
    value = row.get(key)
    if value is None or isinstance(value, dict | list):
        return ""
    return clean(value if isinstance(value, str) else json.dumps(value))


def number(row: Row, key: str) -> float | None:
    """A field as a finite number, also when it is written as text; None otherwise."""
    value = row.get(key)
    if value is None or isinstance(value, bool | dict | list):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(row: Row, key: str) -> int | None:
    """A field as an integer that is not negative; None otherwise."""
    value = number(row, key)
    return int(value) if value is not None and value >= 0 else None


def rows_of(row: Row, key: str) -> Iterator[Row]:
    """The objects of a field that holds a list of them; whatever else is in it is passed over."""
    value = row.get(key)
    items = value if isinstance(value, list) else []
    return (item for item in items if isinstance(item, dict))


def mapping(row: Row, key: str) -> Row:
    """A field that holds an object; {} otherwise."""
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def words(row: Row, key: str) -> tuple[str, ...]:
    """A list of texts, or one text, as texts."""
    value = row.get(key)
    items = value if isinstance(value, list) else [value]
    return tuple(clean(str(item)) for item in items if isinstance(item, str | int | float))
