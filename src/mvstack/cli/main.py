"""The command line. Each command is imported when it is run: start-up time is that of one."""

import ast
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from mvstack import __version__
from mvstack.cli.ending import run
from mvstack.support.home import VARIABLE, use

# The commands below the headings of the help, in the order in which a newcomer needs them.
PANELS = {
    "Start": ("discover", "explain", "check", "list"),
    "Stack": ("install", "test", "report", "up", "abi"),
    "Sources and caches": ("bundle", "sources", "cache"),
    "Pipelines and images": ("diff", "ci", "image"),
    "Write": ("render", "lock", "new"),
}
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}
# The module of each: its own, but for these.
MODULES = {name: name for name in COMMANDS}
MODULES |= dict.fromkeys(("install", "test", "report", "up"), "stack") | {"render": "rendering"}


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
    own = next((one for one in functions if one.name.strip("_") == name), module)
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
    """Run a command and turn what went wrong into a message and an exit code."""
    run(app)
