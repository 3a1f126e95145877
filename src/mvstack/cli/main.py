"""The command line. Each command is imported when it is run: start-up time is that of one."""

import ast
import errno
import io
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from mvstack import __version__
from mvstack.support.console import emit, no_empty_folder
from mvstack.support.errors import Missing, MvstackError, WrongUsage
from mvstack.support.home import VARIABLE, use

# The commands below the headings of the help, in the order in which a newcomer needs them.
PANELS = {
    "Start": ("discover", "explain", "check", "adopt"),
    "Look": ("list", "show"),
    "Stack": ("install", "test", "report", "up", "abi"),
    "Measure": ("compare", "tune"),
    "Sources and caches": ("bundle", "sources", "cache"),
    "Pipelines and images": ("diff", "ci", "image", "cluster"),
    "Watch": ("fabric",),
    "Write": ("render", "lock", "gate", "new", "outdated", "bump"),
}
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}
# The module of each: its own, but for these.
MODULES = {name: name for name in COMMANDS}
MODULES |= dict.fromkeys(("install", "test", "report", "up"), "stack") | {
    "render": "rendering",
    "compare": "measure",
    "tune": "measure",
    "gate": "lock",
    "outdated": "bump",
}


class Commands(TyperGroup):
    """Commands that are imported one by one."""

    def __init__(self, **attrs: Any) -> None:
        names = {name: TyperCommand(name, rich_help_panel=COMMANDS[name]) for name in COMMANDS}
        super().__init__(**{**attrs, "commands": names})

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all, which from here on have their first line of help."""
        for name, command in self.commands.items():
            command.help = _summary(name)
        return list(self.commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The command that ``args`` begin with, imported."""
        name, _, rest = super().resolve_command(ctx, args)
        found = get_command(import_module(f"mvstack.cli.{MODULES[str(name)]}").app)
        return name, getattr(found, "commands", {}).get(name, found), rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; typer takes pydantic's prefix along when a word is none of the choices."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def _summary(name: str) -> str:
    """What the help says of a command, without an import: the docstring of what carries it out."""
    module = ast.parse(Path(__file__).with_name(f"{MODULES[name]}.py").read_text())
    functions = (one for one in module.body if isinstance(one, ast.FunctionDef))
    own = next((one for one in functions if one.name.rstrip("_") == name), module)
    return (ast.get_docstring(own) or "").partition("\n")[0]


app = typer.Typer(
    name="mvstack",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="One description of a machine → the right MVAPICH, built, loaded, checked and reported.",
    epilog="Exit codes: 0 done · 1 a check failed · 2 wrong usage · 3 invalid input · 4 refused · "
    "5 a source · 6 a build · 7 something missing on this machine · 8 locked · 9 (diff) something "
    "would be rebuilt · 130 interrupted (run the same command again).",
)


@app.callback(invoke_without_command=True)
def _first(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    site: Annotated[
        Path | None,
        typer.Option(
            envvar=VARIABLE,
            metavar="DIR",
            help="Folder of your site's systems, policy, releases and recipes (docs/site.md).",
        ),
    ] = None,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
    if site is not None:
        use(site)


def main() -> None:
    """Run a command and turn what went wrong into a message, a JSON document and an exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name or an arrow that the locale lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        no_empty_folder(sys.argv[1:])
        app(prog_name="mvstack", standalone_mode=True)
    except MvstackError as error:
        _fail(error)
    except OSError as error:  # a full disk, a folder of somebody else: met outside our own checks
        first = "correct that"
        if error.errno == errno.ENOSPC and not error.filename and tempfile.tempdir:
            first = f"make room, perhaps in {tempfile.tempdir} (TMPDIR names another folder)"
        todo = f"{first}, then run the same command again: it resumes"
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
