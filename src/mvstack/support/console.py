"""Printing results as JSON or tables, and refusing empty options."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from mvstack.support.errors import WrongUsage
from mvstack.support.units import one_line


def emit(data: Any) -> None:
    """Print JSON."""
    typer.echo(json.dumps(data, indent=2))


def say(data: Any, as_json: bool, *lines: str) -> None:
    """Print ``data`` as JSON, or else the lines that say it to a person."""
    if as_json:
        emit(data)
    else:
        for line in lines:
            typer.echo(line)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their columns' names; through a pipe nothing is cut or wrapped."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column == "size" else "left"
        table.add_column(column, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(one_line(text) for text in row))
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=400)).print(table)


def emit_or_say(rows: list[dict[str, Any]], as_json: bool) -> None:
    """What an installation did, as JSON or in a line."""
    if as_json:
        emit(rows)
    elif not rows:
        typer.echo("everything is installed already; nothing was built")
    else:
        typer.echo(
            "\n".join(
                f"{_done(row)}: {row['package']} {row['version']} {row.get('module', '')}".rstrip()
                for row in rows
            )
        )


def _done(row: dict[str, Any]) -> str:
    """How a package got there."""
    cached = row["result"] == "built" and row.get("from") == "binary cache"
    return "cached" if cached else str(row["result"])


def no_empty_folder(words: list[str]) -> None:
    """Refuse ``--root ""``: Python takes it for the current folder, where a script with an unset
    variable would then install."""
    for word, value in zip(words, [*words[1:], None], strict=False):
        name, sign, joined = word.partition("=")
        if name in ("--root", "--to", "--images") and (joined if sign else value) == "":
            raise WrongUsage(
                f"{name} has an empty value",
                allowed="a folder; `.` is the current one",
                todo="name a folder; in a script, check that the variable is set",
            )


def confirm(question: str) -> bool:
    """Ask a person on the terminal, beside what goes into a pipe."""
    return bool(typer.confirm(question, err=True))
