"""``mvstack cache``: push what is installed, look after caches, and the keys that are trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvstack.support.errors import CheckFailed, InvalidInput, Missing, Problem

if TYPE_CHECKING:
    from mvstack.cache.place import Place
    from mvstack.cache.push import Verdict

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="The binary cache: push what is installed, signed; look at it; the keys that are trusted.",
)
keys_app = typer.Typer(no_args_is_help=True, help="The keys that sign, and those that are trusted.")
app.add_typer(keys_app, name="keys")
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Places = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DIR|URL]...", help="Caches; those of MVSTACK_CACHES if none."),
]


def _emit(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2))


def _places(names: list[str] | None) -> list[Place]:
    from mvstack.cache.place import place

    found = names or os.environ.get("MVSTACK_CACHES", "").split()
    if not found:
        raise InvalidInput(Problem("no cache is named", todo="give a folder or an address"))
    return [place(name) for name in found]


@app.command(epilog="Examples: mvstack cache push local --to /mnt/cache")
def push(
    system: Annotated[
        str, typer.Argument(metavar="SYSTEM[/PARTITION]|FILE", help="What is installed here.")
    ],
    to: Annotated[str, typer.Option("--to", help="The cache: a folder, or file://…")],
    key: Annotated[str, typer.Option(help="Fingerprint, when several keys could sign.")] = "",
    replace: Annotated[bool, typer.Option(help="Push anew what is there already.")] = False,
    release: Annotated[str | None, typer.Option("--release", help="Else the newest.")] = None,
    root: Annotated[Path | None, typer.Option("--root", help="Install root.")] = None,
    as_json: Json = False,
) -> None:
    """Push every package of an installed partition into a cache, signed."""
    from mvstack.cache import gpg
    from mvstack.cache.place import place
    from mvstack.cache.push import push as push_tree
    from mvstack.install.flow import installed_here
    from mvstack.support.progress import Progress

    _, plan = installed_here(system, release, root, "cache push")
    own = gpg.own_key(key)
    progress = Progress(mode="quiet" if as_json else "auto")
    if plan.get("builder") == "spack":
        from mvstack.builders.spack.cache import push as push_spack

        rows = push_spack(plan, place(to), own, progress, replace)
    else:
        rows = push_tree(plan, place(to), own, progress, replace)
    if as_json:
        _emit({"key": own.fingerprint, "entries": rows})
        return
    pushed = [row for row in rows if row["result"] == "pushed"]
    size = sum(row.get("bytes", 0) for row in pushed) / 1e6
    typer.echo(
        f"{len(pushed)} packages pushed ({size:.1f} MB), {len(rows) - len(pushed)} were there; "
        f"signed with {own.fingerprint}"
    )


@app.command("list", epilog="Examples: mvstack cache list /mnt/cache")
def list_(places: Places = None, as_json: Json = False) -> None:
    """Say what caches hold, for which machines, and who signed it."""
    found = _looked_at(places, whole=False, as_json=as_json)
    if as_json:
        _emit([{"cache": name, **_as_dict(one)} for name, one in found])
        return
    _show(found)
    good = sum(one.state == "good" for _, one in found)
    typer.echo(f"{good} entries" + (f", {len(found) - good} refused" if good < len(found) else ""))


@app.command(epilog="Examples: mvstack cache verify /mnt/cache")
def verify(places: Places = None, as_json: Json = False) -> None:
    """Check every signature and every byte again. Nothing is removed."""
    found = _looked_at(places, whole=True, as_json=as_json)
    bad = [(name, one) for name, one in found if one.state == "refused"]
    if as_json:
        _emit([{"cache": name, **_as_dict(one)} for name, one in found])
        raise typer.Exit(CheckFailed.exit_code if bad else 0)
    typer.echo(f"{len(found) - len(bad)} of {len(found)} entries are whole and signed")
    if bad:
        raise CheckFailed(
            *(
                Problem(
                    f"refused: {one.why}",
                    f"{name}: {one.os}/{one.content}",
                    todo="have it pushed again by who built it: mvstack cache push",
                )
                for name, one in bad
            ),
            outcome="Nothing was removed.",
        )


def _looked_at(places: list[str] | None, whole: bool, as_json: bool) -> list[tuple[str, Verdict]]:
    from mvstack.cache.place import Unreachable
    from mvstack.cache.push import look
    from mvstack.support.progress import Progress

    found: list[tuple[str, Verdict]] = []
    progress = Progress(mode="quiet" if as_json else "auto")
    for one in _places(places):
        with progress.step("verify" if whole else "look at", one.name) as step:
            try:
                for verdict in look(one, whole):
                    found.append((one.name, verdict))
                    step.note(f"{len(found)} entries")
            except Unreachable as why:
                raise Missing(
                    Problem(
                        "the cache cannot be asked",
                        one.name,
                        found=str(why),
                        todo="name the folder that `cache push --to` filled, or its address",
                    )
                ) from None
    return found


def _as_dict(one: Verdict) -> dict[str, Any]:
    row: dict[str, Any] = {"os": one.os, "hash": one.content, "state": one.state}
    if one.manifest:
        about = one.manifest
        row |= {
            "package": about.package,
            "version": about.version,
            "module": about.module,
            "mpi": about.mpi,
            "easyconfig": about.easyconfig,
            "target": about.target,
            "bytes": about.archive.size,
            "tree": about.tree,
            "signed_by": one.signer,
        }
    return row | ({"why": one.why} if one.why else {})


def _show(found: list[tuple[str, Verdict]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from mvstack.support.units import one_line

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("package", "over", "for", "size", "content", "signed by"):
        table.add_column(column, justify="right" if column == "size" else "left", overflow="fold")
    for _, one in found:
        about = one.manifest
        if about is None:
            table.add_row("refused", one_line(one.why), one.os, "", one.content[:12], "")
            continue
        table.add_row(
            f"{about.package} {about.version}",
            about.mpi,
            f"{about.os} {about.target}",
            f"{about.archive.size / 1e6:,.1f} MB",
            one.content[:12],
            one.signer[-16:],
        )
    console = Console(highlight=False)
    if not console.is_terminal:  # through a pipe nothing is cut or wrapped
        console = Console(highlight=False, width=400)
    console.print(table)


@keys_app.command(epilog='Example: mvstack cache keys create "HPC group, University of X"')
def create(
    name: Annotated[str, typer.Argument(help="Whose key it is: the site or group.")],
    email: Annotated[str, typer.Option(help="An address of theirs.")] = "mvapich-stack@localhost",
    as_json: Json = False,
) -> None:
    """Make a key that signs what is pushed. It has no passphrase: guard the folder it lies in."""
    from mvstack.cache import gpg

    made = gpg.create(name, email)
    if as_json:
        _emit({"fingerprint": made.fingerprint, "name": made.name, "home": str(gpg.home())})
        return
    typer.echo(f"{made.fingerprint}  {made.name}")
    typer.echo(f"its secret half lies in {gpg.home()} and has no passphrase; who reads it can sign")


@keys_app.command("list")
def list_keys(as_json: Json = False) -> None:
    """Say which keys are trusted here, and which can sign."""
    from mvstack.cache import gpg

    found = gpg.trusted()
    if as_json:
        _emit([{"fingerprint": k.fingerprint, "name": k.name, "own": k.own} for k in found])
        return
    for key in found:
        typer.echo(f"{key.fingerprint}  {'can sign  ' if key.own else 'trusted   '}{key.name}")
    if not found:
        typer.echo(f"no key is trusted here ({gpg.home()}): every entry would be refused")


@keys_app.command(epilog="Example: mvstack cache keys export --to site.asc")
def export(
    key: Annotated[str, typer.Option(help="Fingerprint, when several keys can sign.")] = "",
    to: Annotated[Path | None, typer.Option("--to", help="A file; else it is printed.")] = None,
    as_json: Json = False,
) -> None:
    """Write the public half of the site's key, for machines that install to trust."""
    from mvstack.cache import gpg
    from mvstack.support.files import write_atomically

    own = gpg.own_key(key)
    text = gpg.export(own.fingerprint)
    if to is not None:
        write_atomically(to, text)
    if as_json:
        _emit({"fingerprint": own.fingerprint, "name": own.name, "key": text})
        return
    if to is None:
        typer.echo(text, nl=False)
        return
    typer.echo(f"{own.fingerprint} is in {to}; tell the fingerprint by another way than the file")


@keys_app.command(
    epilog="Example: mvstack cache keys trust site.asc --fingerprint 0123…   (40 digits)"
)
def trust(
    file: Annotated[str, typer.Argument(metavar="FILE|URL", help="What `keys export` wrote.")],
    fingerprint: Annotated[
        str, typer.Option(help="Trust it only if it is this key; ask its site for it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Trust a site's key: from then on what it signed is installed."""
    from mvstack.cache import gpg

    text = _text(file)
    wanted = fingerprint.replace(" ", "").upper()
    found = gpg.fingerprints_in(text)
    if wanted and [key.fingerprint for key in found] != [wanted]:
        raise InvalidInput(
            Problem(
                "this is another key than the one that is meant",
                file,
                found=", ".join(key.fingerprint for key in found) or "no public key",
                allowed=wanted,
            ),
            outcome="Nothing is trusted that was not before.",
        )
    taken = gpg.trust(text)
    if as_json:
        _emit([{"fingerprint": key.fingerprint, "name": key.name} for key in taken])
        return
    for key in taken:
        typer.echo(f"trusted from now on: {key.fingerprint}  {key.name}")
    if not wanted:
        typer.echo("compare the fingerprint with the one that its site tells you")


@keys_app.command()
def forget(
    fingerprint: Annotated[str, typer.Argument(help="The whole fingerprint.")],
    as_json: Json = False,
) -> None:
    """Trust a key no longer; if it is the site's own, it is gone for good."""
    from mvstack.cache import gpg

    known = {key.fingerprint for key in gpg.trusted()}
    wanted = fingerprint.replace(" ", "").upper()
    if wanted not in known:
        raise InvalidInput(
            Problem(
                "no such key is trusted here",
                fingerprint or '""',
                allowed=", ".join(sorted(known)),
                todo="`mvstack cache keys list` names them; give all 40 digits",
            )
        )
    gpg.forget(wanted)
    if as_json:
        _emit({"forgotten": wanted})
        return
    typer.echo(f"no longer trusted: {wanted}")


def _text(file: str) -> bytes:
    """A key's file, from a path or a URL."""
    from mvstack.cache.place import Unreachable, place

    head, _, name = file.rpartition("/")
    if "://" not in file:
        try:
            return Path(file).expanduser().read_bytes()
        except (OSError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise InvalidInput(
                Problem(
                    f"cannot be read: {why}",
                    file or '""',
                    todo="give the file that `mvstack cache keys export --to` wrote",
                )
            ) from None
    if "://" not in head:  # no path behind the host
        raise InvalidInput(
            Problem("this is the address of no file", file, allowed="https://host/…/site.asc")
        )
    try:
        found = place(head).read(name)
    except Unreachable as why:
        raise Missing(Problem("cannot be had", file, found=str(why))) from None
    if found is None:
        raise InvalidInput(Problem("there is no such file", file))
    return found
