"""Printing results as JSON, as lines or as tables, and refusing empty options."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mvstack.support.errors import MvstackError, WrongUsage
from mvstack.support.units import one_line


def emit(data: Any) -> None:
    """Print JSON."""
    typer.echo(json.dumps(data, indent=2))


def say(data: Any, as_json: bool, *lines: str | Table, failed: MvstackError | None = None) -> None:
    """Print ``data`` as JSON, or else the lines and tables that say it to a person.

    The command ends with ``failed`` where that has problems; beside JSON with its exit code alone,
    for a script reads one document, and that has said it.
    """
    failed = failed if failed and failed.problems else None
    if as_json:
        emit(data)
        if failed:
            raise typer.Exit(failed.exit_code)
    for line in () if as_json else lines:
        if isinstance(line, str):
            typer.echo(line)
        else:  # through a pipe nothing is cut or wrapped
            console = Console(highlight=False)
            (console if console.is_terminal else Console(highlight=False, width=400)).print(line)
    if failed:
        raise failed


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows below their columns' names."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column == "size" else "left", overflow="fold")
    for row in rows:
        made.add_row(*(one_line(text) for text in row))
    return made


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and what they stand for; a label that stands for several lines is shown once."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2), pad_edge=True)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    previous = ""
    for label, value in rows:
        table.add_row(label if label != previous else "", Text(value))
        previous = label
    return table


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
