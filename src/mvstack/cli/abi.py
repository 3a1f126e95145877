"""`mvstack abi`: can programs that are linked to one MPI run with another?"""

from pathlib import Path
from typing import Annotated

from typer import Argument

from mvstack.abi.compare import differences, read_constants, read_library, read_program
from mvstack.cli import options
from mvstack.support.console import say
from mvstack.support.errors import CheckFailed, InvalidInput, Problem

WHAT = "Prefix of an installed MPI, or its libmpi.so."

app = options.commands()


@app.command(epilog="Example: mvstack abi /apps/mpich-4.0.2 /apps/mvapich-3.0 ./program")
def abi(
    old: Annotated[Path, Argument(metavar="OLD", help=WHAT)],
    new: Annotated[Path, Argument(metavar="NEW", help=WHAT)],
    programs: Annotated[
        list[Path] | None,
        Argument(
            metavar="PROGRAM", help="Programs linked to OLD; else everything that OLD offers."
        ),
    ] = None,
    as_json: options.Json = False,
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
    data = {
        "old": str(before.path),
        "new": str(after.path),
        "soname": [before.soname, after.soname],
        "names": counted,
        "compatible": not found,
        "differences": [one.__dict__ for one in found],
    }
    constants = "and the constants of mpi.h " if old.is_dir() and new.is_dir() else ""
    same = (
        f"{after.path}: soname {after.soname}, {counted} names {constants}as in {before.path}: "
        "programs need no rebuild"
    )
    failed = CheckFailed(
        *(
            Problem(f"{x.what}: {x.means}", str(after.path), found=f"{x.old} became {x.new}")
            for x in found
        ),
        outcome="Rebuild the programs with the new MPI.",
    )
    say(data, as_json, *([] if found else [same]), failed=failed)
