"""How a command ends: what went wrong becomes a message, a JSON document and an exit code."""

import io
import sys

import typer

from mvstack.support.console import emit, no_empty_folder
from mvstack.support.errors import Missing, MvstackError, WrongUsage


def _fail(error: MvstackError) -> None:
    as_json = "--json" in sys.argv
    if as_json:
        try:
            emit(error.as_dict())
        except OSError:  # standard output itself is what cannot be written
            as_json = False
    if not as_json:
        typer.echo(f"mvstack: {error.title}\n{error}", err=True)
    sys.exit(error.exit_code)


def _usage_as_json(end: SystemExit) -> None:
    """What typer told standard error of a wrong command line, for the script that reads us too."""
    told = getattr(end.__context__, "format_message", None)
    if told is not None:
        emit(WrongUsage(told(), todo="the same command with --help").as_dict())


def run(app: typer.Typer) -> None:
    """Run the command that this process's arguments name, and exit as it ended."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name or an arrow that the locale lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        no_empty_folder(sys.argv[1:])
        app(prog_name="mvstack", standalone_mode=True)
    except MvstackError as error:
        _fail(error)
    except OSError as error:  # a full disk, a folder of somebody else: met outside our own checks
        todo = "correct that, then run the same command again: it resumes"
        what = f"the system says: {error.strerror or error}"
        _fail(Missing(what, str(error.filename or ""), todo=todo))
    except (KeyboardInterrupt, SystemExit) as end:
        # Ctrl-C reaches us as the exit code that typer makes of it, without a word
        if isinstance(end, SystemExit) and end.code != 130:
            if end.code == WrongUsage.exit_code and "--json" in sys.argv:
                _usage_as_json(end)
            raise
        typer.echo("\nmvstack: interrupted; run the same command again to resume", err=True)
        sys.exit(130)
