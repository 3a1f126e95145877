"""``mvstack discover``: look at this machine."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from mvstack.cli import options
from mvstack.discover import capture as write_capture
from mvstack.discover import look, system_yaml
from mvstack.discover.system import NAME as SYSTEM_NAME
from mvstack.support.console import emit, say
from mvstack.support.errors import InvalidInput

app = options.commands()
BuilderName = Annotated[Literal["easybuild", "spack"], Option(help="Builder of the system.")]


@app.command(epilog="Examples: mvstack discover > mine.yaml   ·   mvstack discover --json")
def discover(
    root: Annotated[
        Path,
        Option(
            metavar="FILE|FOLDER",
            help="Read a capture, or a folder as if it were /, and run no tool.",
        ),
    ] = Path("/"),
    name: Annotated[str, Option(help="Name of the system.")] = "local",
    as_json: options.Json = False,
    capture: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Write everything that was read to this file, for a bug report."
        ),
    ] = None,
    builder: BuilderName = "easybuild",
) -> None:
    """Look at this machine and print a system file to edit."""
    if capture is not None:
        if root != Path("/"):
            what, todo = "only this machine can be captured", "leave one of them out"
            raise InvalidInput(what, "--capture with --root", todo=todo)
        write_capture(capture)
        said = f"wrote {capture}; read it with: mvstack discover --root {capture}"
        say({"capture": str(capture)}, as_json, said)
        return
    if not root.exists():
        todo = "give what `discover --capture` wrote, or a folder with a machine's files"
        raise InvalidInput("there is no such file or folder", str(root), todo=todo)
    if not SYSTEM_NAME.fullmatch(name):
        allowed = "up to 40 small letters, digits and . _ -, beginning with a letter"
        raise InvalidInput("not a valid system name", "--name", found=name, allowed=allowed)
    machine = look(root)
    if as_json:
        emit(machine.model_dump(mode="json"))
        return
    typer.echo(system_yaml(machine, name, builder=builder), nl=False)
    for note in machine.notes:
        typer.echo(f"note: {note}", err=True)
