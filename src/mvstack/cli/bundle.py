"""``mvstack bundle``: all that a machine without a network needs, in one folder."""

from pathlib import Path
from typing import Annotated

from typer import Option

from mvstack.bundle.make import make
from mvstack.cache.use import site_caches
from mvstack.cli import options
from mvstack.install.flow import Request
from mvstack.support.console import say
from mvstack.support.errors import InvalidInput
from mvstack.support.files import full

app = options.commands()


@app.command(epilog="Example: mvstack bundle local --sources --to /mnt/stick/local")
def bundle(
    system: options.System,
    to: Annotated[Path, Option("--to", metavar="DIR", help="Folder to write.")],
    sources: Annotated[bool, Option("--sources", help="Bring sources, to compile there.")] = False,
    binaries: Annotated[
        bool, Option("--binaries", help="Bring signed binaries, built here or cached.")
    ] = False,
    cache: options.Caches = None,
    release: options.ReleaseName = None,
    root: options.Root = None,
    profile: options.Profile = None,
    as_json: options.Json = False,
) -> None:
    """Write a folder from which a machine without a network installs a system."""
    if sources == binaries:
        raise InvalidInput(
            "a bundle holds either sources or binaries",
            allowed="--sources, --binaries",
            todo="give --binaries if the other machine is of the same kind and this "
            "one or a cache has the packages; else --sources",
        )
    to = full(to)
    asked = Request(system, release, root, profile or "", caches=site_caches(cache or []))
    about = make(asked, to, binaries, options.progress(as_json))
    size = sum(path.stat().st_size for path in to.rglob("*") if not path.is_symlink()) / 1e6
    signers = about["binaries"]["signed_by"] if about["binaries"] else []
    lines = (f"send this fingerprint separately: {one}" for one in signers)
    where = f"{to}: {size:.0f} MB; copy it over and follow its README.md (./install --help)"
    say(about, as_json, where, *lines)
