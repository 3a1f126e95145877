"""`mvstack abi`: can programs that are linked to one MPI run with another?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mvstack.abi.compare import Difference, differences
from mvstack.abi.library import read_constants, read_library, read_program
from mvstack.cli.options import Json
from mvstack.support.console import emit
from mvstack.support.errors import CheckFailed, InvalidInput, Problem

WHAT = "Prefix of an installed MPI, or its libmpi.so."


def abi(
    old: Annotated[Path, typer.Argument(metavar="OLD", help=WHAT)],
    new: Annotated[Path, typer.Argument(metavar="NEW", help=WHAT)],
    programs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PROGRAM", help="Programs linked to OLD; else everything that OLD offers."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether programs linked to the MPI in OLD run with the one in NEW without a rebuild."""
    before, after = read_library(old), read_library(new)
    needed: frozenset[str] | None = None
    named: frozenset[str] = frozenset()
    for program in programs or []:
        names, libraries = read_program(program)
        if not before.sonames & libraries:
            raise InvalidInput(
                f"this program is not linked to {before.soname or before.path.name}",
                str(program),
                found=", ".join(sorted(libraries)) or "no library at all",
                todo="name programs that are linked to OLD",
            )
        needed = names | (needed or frozenset())
        named |= before.sonames & libraries
    was, is_now = (read_constants(one) if one.is_dir() else {} for one in (old, new))
    found = list(differences(before, after, was, is_now, needed, named))
    counted = len(before.names if needed is None else needed)
    if as_json:
        emit(
            {
                "old": str(before.path),
                "new": str(after.path),
                "soname": [before.soname, after.soname],
                "names": counted,
                "compatible": not found,
                "differences": [one.__dict__ for one in found],
            }
        )
        raise typer.Exit(1 if found else 0)
    if found:
        raise CheckFailed(
            *(_problem(one, after.path) for one in found),
            outcome="Rebuild the programs with the new MPI.",
        )
    constants = "and the constants of mpi.h " if old.is_dir() and new.is_dir() else ""
    typer.echo(
        f"{after.path}: soname {after.soname}, {counted} names {constants}as in {before.path}: "
        "programs need no rebuild"
    )


def _problem(one: Difference, where: Path) -> Problem:
    return Problem(f"{one.what}: {one.means}", str(where), found=f"{one.old} became {one.new}")
