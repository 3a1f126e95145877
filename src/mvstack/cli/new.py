"""Start a site's own folder, or a system, application or check in it."""

import re
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from typer import Argument, Option

from mvstack.cli import options
from mvstack.model.load import load_release, system_names
from mvstack.model.text import Name, PackageName, Version, expected
from mvstack.render.templates import template
from mvstack.support.errors import InvalidInput, Problem, Refused, relative
from mvstack.support.files import write_atomically
from mvstack.support.home import VARIABLE, home, use
from mvstack.support.words import listed

app = options.commands(__doc__)
Below = Annotated[Path | None, Option(metavar="DIR", help="Site folder; else that of --site.")]


@app.command(epilog="Example: mvstack new site ~/our-site")
def site(
    folder: Annotated[str, Argument(metavar="DIR", help="New or empty folder.")],
) -> None:
    """Start a site's own folder, which adds to mvapich-stack without a fork."""
    todo = "name a folder that is new or empty"
    if not folder.strip():  # Python takes it for the current folder
        raise InvalidInput("an empty name is no folder", '""', todo=todo)
    top = Path(folder)
    if top.exists() and not top.is_dir():
        raise InvalidInput("this is a file, not a folder", relative(top), todo=todo)
    _write(
        {
            top / "README.md": template("new/README.md", name=top.resolve().name),
            top / "modulefiles" / "site.lua": template("new/site.lua"),
        },
        f"mvstack --site {quote(str(top))} new system NAME, or set "
        f"{VARIABLE}={quote(str(top.resolve()))}",
    )


@app.command(epilog="Example: mvstack --site our-site new system mycluster")
def system(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the system.")], to: Below = None
) -> None:
    """Start the description of a machine."""
    valid("NAME", Name, name)
    ours = f"mvapich-stack has a system {name}; yours replaces it" if name in system_names() else ""
    _write(
        {site_folder(to) / "systems" / f"{name}.yaml": template("new/system.yaml", name=name)},
        f"edit it, then mvstack --site {relative(site_folder(to))} check {name}",
        ours,
    )


@app.command(epilog="Example: mvstack --site our-site new application Zeta 1.2.0")
def application(
    name: Annotated[str, Argument(metavar="NAME", help="Name, spelled as its authors do.")],
    version: Annotated[str, Argument(metavar="VERSION", help="Version of the application.")],
    to: Below = None,
) -> None:
    """Start an application: its row in the newest release, and its easyconfig."""
    valid("NAME", PackageName, name)
    valid("VERSION", Version, version)
    newest = load_release()
    top, release = site_folder(to), newest.name
    known = [f"{x.name} {x.version}" for x in newest.packages if x.name.lower() == name.lower()]
    ours = f"release {release} has {listed(known)}; yours is added to it" if known else ""
    values = {"name": name, "version": version, "release": release}
    easyconfig = f"{name}-{version}-gmvapich-{release}-ofi.eb"
    files = {
        top / "easyconfigs" / name[0].lower() / name / easyconfig: template(
            "new/application.eb", **values
        )
    }
    rows = top / "releases" / f"{release}.yaml"
    then = f"edit them, mvstack --site {relative(top)} check, then mvstack new check {name}"
    if rows.exists():
        then = f"append to {relative(rows)}:\n{template('new/package.yaml', **values)}{then}"
    else:
        files[rows] = template("new/release.yaml", **values)
    _write(files, then, ours)


@app.command(epilog="Example: mvstack --site our-site new check Zeta")
def check(
    name: Annotated[str, Argument(metavar="NAME", help="Package to check, as in the release.")],
    to: Below = None,
) -> None:
    """Start a ReFrame check of a package."""
    valid("NAME", PackageName, name)
    words = re.findall(r"[A-Za-z0-9]+", name)
    stem = "_".join(words).lower()
    class_name = "Check" + "".join(word[0].upper() + word[1:] for word in words)
    text = template("new/check.py", name=name, class_name=class_name)
    path = site_folder(to) / "checks" / f"check_{stem}.py"
    _write({path: text}, f"edit it, then mvstack --site {relative(site_folder(to))} test SYSTEM")


def site_folder(to: Path | None) -> Path:
    """The site's folder to write to, in use from here on."""
    if to is not None:
        use(to)
    site = home().site
    if site is None:
        what = "no site folder is named; mvapich-stack's own files are never changed"
        todo = "`mvstack new site DIR` makes one; then name it: mvstack --site DIR …"
        raise InvalidInput(what, "--site", todo=todo)
    return site


def valid(what: str, kind: Any, value: str) -> None:
    """Raise InvalidInput for a ``value`` that is not of the ``kind`` of the model's."""
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        because = expected(error.errors()[0])
        raise InvalidInput(f"{what}: this cannot be used", found=value, because=because) from None


def _write(files: dict[Path, str], then: str, warning: str = "") -> None:
    """Write all of ``files``, and say what to do next; none if one of them is there already."""
    if there := [Problem("exists already", relative(path)) for path in files if path.exists()]:
        raise Refused(*there, outcome="Nothing was written.")
    for path, text in files.items():
        write_atomically(path, text)
        typer.echo(f"wrote {relative(path)}")
    if warning:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"next: {then}")
