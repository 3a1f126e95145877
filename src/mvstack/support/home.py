"""Where the hand-written files are: those of this repository, and those of a site before them.

In a checkout they are the checkout's own folders; an installed package carries them in its `data`.
A site keeps what it adds in a folder of its own, named with `--site` or in MVSTACK_SITE.
"""

import os
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.support.errors import InvalidInput, Missing, Problem, relative
from mvstack.support.files import full
from mvstack.support.words import listed, nearest

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = (PACKAGE / "data").is_dir()
DATA = PACKAGE / "data" if INSTALLED else PACKAGE.parents[1]
"""The top of this repository's files."""

VARIABLE = "MVSTACK_SITE"
"""Holds the site's folder, so that every process we start knows it as well."""

FOLDERS = {
    "systems": "environments/systems",
    "policy": "environments/policy",
    "tuning": "environments/tuning",
    "releases": "environments/releases",
    "easyconfigs": "easyconfigs",
    "spack-repo": "spack-repo",
    "modulefiles": "modulefiles",
    "references": "tests/references",
    "checks": "tests/reframe",
}
"""The folders that a site may have, and the folder of ours that each goes before."""


@dataclass(frozen=True)
class Home:
    """The folders to look in, the site's first; ``data`` is the top of a repository's files."""

    site: Path | None = None
    data: Path = DATA

    def folders(self, kind: str) -> list[Path]:
        """The site's folder of that kind, if it has one, and ours."""
        ours = self.data / FOLDERS[kind]
        if not self.site or (own := self.site / kind) == ours or not os.path.lexists(own):
            return [ours]
        if not own.is_dir() or not os.access(own, os.R_OK | os.X_OK):
            what = "this cannot be read" if own.is_dir() else "this is no folder"
            raise InvalidInput(what, str(own), todo="mend it, or take it away")
        return [own, ours]

    def files(self, kind: str, pattern: str = "*.yaml") -> dict[str, Path]:
        """Every file of that kind by its name, sorted; the site's stands for ours of one name."""
        found: dict[str, Path] = {}
        for folder in reversed(self.folders(kind)):
            for odd in folder.glob("*.yml") if pattern.endswith(".yaml") else ():
                what, todo = "nothing reads a file of this name", f"call it {odd.stem}.yaml"
                raise InvalidInput(what, relative(odd), todo=todo)
            found |= {path.name: path for path in sorted(folder.glob(pattern), key=str)}
        return dict(sorted(found.items()))

    def file(self, kind: str, name: str) -> Path:
        """The site's file of that name if it has one, else ours, whether it is there or not."""
        places = [folder / name for folder in self.folders(kind)]
        return next((path for path in places if path.is_file()), places[-1])

    def named(self, path: Path) -> str:
        """``path`` from the top of the folder that holds it: the same on every machine."""
        tops = [top for top in (self.site, self.data) if top and path.is_relative_to(top)]
        return str(path.relative_to(tops[0]) if tops else path)


def home() -> Home:
    """The folders that this process uses."""
    site = os.environ.get(VARIABLE, "")
    return Home(full(site).resolve() if site else None)


def use(site: Path) -> None:
    """Look in ``site`` first from here on, in this process and those that it starts.

    Raises InvalidInput for what is no folder, or holds a folder that no site has.
    """
    site = full(site).resolve()
    if not site.is_dir():
        what = "this is a file, not a folder" if site.exists() else "there is no such folder"
        new = "our-site" if site.exists() else site
        todo = f"name the site's folder (also by {VARIABLE}); `mvstack new site {new}` makes one"
        raise InvalidInput(what, str(site), todo=todo)
    problems = [
        Problem(
            f"{path.name}: a site has no such folder",
            str(site),
            allowed=listed(FOLDERS),
            nearest=meant,
        )
        for path in sorted(site.iterdir())
        if path.is_dir() and path.name not in FOLDERS and (meant := nearest(path.name, FOLDERS))
    ]
    if problems:
        raise InvalidInput(*problems)
    os.environ[VARIABLE] = str(site)


def checkout(what: str) -> Path:
    """The checkout that we run from. Raises Missing where we were installed from a wheel."""
    if INSTALLED:
        raise Missing(
            f"{what} needs a clone of mvapich-stack",
            found=f"an installed package, {PACKAGE}",
            todo="clone the repository and run its ./mvstack",
        )
    return DATA


def own_tool(what: str, command: str = "mvstack render") -> Any:
    """What tools/derived has, by which a clone keeps itself right. Raises as checkout()."""
    return runpy.run_path(str(checkout(command) / "tools" / "derived"), {"what": what})["found"]
