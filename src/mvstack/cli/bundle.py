"""``mvstack bundle``: all that a machine without a network needs, in one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mvstack.support.errors import InvalidInput, Problem


def bundle(
    system: Annotated[
        str,
        typer.Argument(metavar="SYSTEM[/PARTITION]|FILE", help="What is to be installed there."),
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")],
    sources: Annotated[bool, typer.Option("--sources", help="To be compiled there.")] = False,
    binaries: Annotated[
        bool, typer.Option("--binaries", help="Compiled here, or in a cache; signed.")
    ] = False,
    cache: Annotated[
        list[str] | None,
        typer.Option("--cache", help="Take binaries from there first; also MVSTACK_CACHES."),
    ] = None,
    release: Annotated[str | None, typer.Option("--release", help="Else the newest.")] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="Install root of sources and of what is built.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Write one folder from which a machine without a network installs a system."""
    # start-up time: only this command needs it
    from mvstack.bundle.make import make
    from mvstack.cache.use import site_caches
    from mvstack.install.flow import Request
    from mvstack.support.progress import Progress

    if sources == binaries:
        raise InvalidInput(
            Problem(
                "a bundle brings sources or binaries",
                allowed="--sources, --binaries",
                todo="--binaries when the machine there is of the same kind and what it needs is "
                "installed here or in a cache; else --sources",
            )
        )
    progress = Progress(mode="quiet" if as_json else "auto")
    asked = Request(system, release, root, caches=site_caches(cache or []))
    about = make(asked, to.absolute(), binaries, progress)
    if as_json:
        typer.echo(json.dumps(about, indent=2))
        return
    size = sum(path.stat().st_size for path in to.rglob("*") if not path.is_symlink()) / 1e6
    typer.echo(f"{to}: {size:.0f} MB; carry it over, and there: ./install --help is its README.md")
    for signer in about["binaries"]["signed_by"] if about["binaries"] else []:
        typer.echo(f"tell them this fingerprint by another way: {signer}")
