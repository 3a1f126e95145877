"""Push to a binary cache, list and verify it, and manage the keys you trust."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from mvstack.builders.base import builder_of
from mvstack.cache import gpg
from mvstack.cache.place import PUSH_AGAIN, Unreachable, place
from mvstack.cache.push import Verdict, look
from mvstack.cache.use import cache_names
from mvstack.cli import options
from mvstack.install.stages import installed_here
from mvstack.support.console import emit, say, table
from mvstack.support.errors import CheckFailed, InvalidInput, Missing, Problem, Refused
from mvstack.support.files import write_atomically

app = options.commands(__doc__)
keys_app = options.commands("Manage the keys that sign and that you trust.")
app.add_typer(keys_app, name="keys")
Places = Annotated[
    list[str] | None,
    Argument(metavar="DIR|URL", help="Caches; MVSTACK_CACHES if none is named."),
]


@app.command(epilog="Examples: mvstack cache push local --to /mnt/cache")
def push(
    system: options.System,
    to: Annotated[str, Option(metavar="DIR", help="Cache to push to.")],
    key: options.Key = "",
    replace: Annotated[
        bool, Option("--replace", help="Push packages again that the cache has already.")
    ] = False,
    release: options.ReleaseName = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Sign every package of an installed partition and push it to a cache."""
    _, plan = installed_here(system, release, root, "cache push")
    own = gpg.own_key(key)
    builder = builder_of(plan.get("builder") or "easybuild")
    rows = builder.push(plan, place(to), own, options.progress(as_json), replace)
    pushed = [row for row in rows if row["result"] == "pushed"]
    size = sum(row.get("bytes", 0) for row in pushed) / 1e6
    say(
        {"key": own.fingerprint, "entries": rows},
        as_json,
        f"{len(pushed)} packages pushed ({size:.1f} MB), {len(rows) - len(pushed)} there already; "
        f"signed with {own.fingerprint}",
    )


@app.command("list", epilog="Examples: mvstack cache list /mnt/cache")
def list_(places: Places = None, as_json: options.Json = False) -> None:
    """List the packages in caches, the machines they are for, and who signed them."""
    found = _looked_at(places, whole=False, as_json=as_json)
    data = [{"cache": name, **one.as_dict()} for name, one in found]
    heads = ("package", "over", "for", "size", "content", "signed by")
    shown = table(heads, (_row(one) for _, one in found))
    good = sum(one.state == "good" for _, one in found)
    refused = f", {len(found) - good} refused" if good < len(found) else ""
    say(data, as_json, shown, f"{good} entries{refused}")


def _row(one: Verdict) -> tuple[str, ...]:
    about = one.manifest
    if about is None:
        return ("refused", one.why, one.os, "", one.content[:12], "")
    name, machine = f"{about.package} {about.version}", f"{about.os} {about.target}"
    size = f"{about.archive.size / 1e6:,.1f} MB"
    return (name, about.mpi, machine, size, one.content[:12], one.signer[-16:])


@app.command(epilog="Examples: mvstack cache verify /mnt/cache")
def verify(places: Places = None, as_json: options.Json = False) -> None:
    """Check every signature and every byte again. Removes nothing."""
    found = _looked_at(places, whole=True, as_json=as_json)
    data = [{"cache": name, **one.as_dict()} for name, one in found]
    bad = [
        Problem(f"refused: {one.why}", f"{name}: {one.os}/{one.content}", todo=PUSH_AGAIN)
        for name, one in found
        if one.state == "refused"
    ]
    good = f"{len(found) - len(bad)} of {len(found)} entries are whole and signed"
    say(data, as_json, good, failed=CheckFailed(*bad, outcome="Nothing was removed."))


def _looked_at(names: list[str] | None, whole: bool, as_json: bool) -> list[tuple[str, Verdict]]:
    caches = [place(name) for name in names or cache_names()]
    if not caches:
        raise InvalidInput("no cache is named", todo="give a folder or a URL")
    found: list[tuple[str, Verdict]] = []
    shown = options.progress(as_json)
    for one in caches:
        with shown.step("verify" if whole else "read", one.name) as step:
            try:
                for verdict in look(one, whole):
                    found.append((one.name, verdict))
                    step.note(f"{len(found)} entries")
            except Unreachable as why:
                todo = "name the folder that `cache push --to` filled, or its URL"
                what = "the cache cannot be read"
                raise Missing(what, one.name, found=str(why), todo=todo) from None
    return found


@keys_app.command(epilog='Example: mvstack cache keys create "HPC group, University of X"')
def create(
    name: Annotated[str, Argument(metavar="NAME", help="Site or group that owns the key.")],
    email: Annotated[str, Option(help="Its e-mail address.")] = "mvapich-stack@localhost",
    as_json: options.Json = False,
) -> None:
    """Make a key to sign with. It has no passphrase: protect the folder that holds it."""
    made = gpg.create(name, email)
    data = {"fingerprint": made.fingerprint, "name": made.name, "home": str(gpg.home())}
    where = f"the secret key is in {gpg.home()}, without a passphrase: who can read it can sign"
    say(data, as_json, f"{made.fingerprint}  {made.name}", where)


@keys_app.command("list")
def list_keys(as_json: options.Json = False) -> None:
    """List the keys that you trust, and those that can sign."""
    found = gpg.trusted()
    data = [{"fingerprint": k.fingerprint, "name": k.name, "own": k.own} for k in found]
    none = f"no key is trusted here ({gpg.home()}): every package would be refused"
    rows = [f"{k.fingerprint}  {'can sign  ' if k.own else 'trusted   '}{k.name}" for k in found]
    say(data, as_json, *(rows or [none]))


@keys_app.command(epilog="Example: mvstack cache keys export --to site.asc")
def export(
    key: options.Key = "",
    to: Annotated[
        Path | None, Option(metavar="FILE", help="File to write; else standard output.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write your public key, for other machines to trust."""
    own = gpg.own_key(key)
    text = gpg.export(own.fingerprint)
    if to is not None:
        write_atomically(to, text)
    if as_json:
        emit({"fingerprint": own.fingerprint, "name": own.name, "key": text})
    elif to is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"{own.fingerprint} is in {to}; send the fingerprint separately")


@keys_app.command(
    epilog="Example: mvstack cache keys trust site.asc --fingerprint 0123…   (40 digits)"
)
def trust(
    file: Annotated[str, Argument(metavar="FILE|URL", help="Public key from `keys export`.")],
    fingerprint: Annotated[
        str, Option(help="Trust the key only if it has this fingerprint; ask its owner.")
    ] = "",
    as_json: options.Json = False,
) -> None:
    """Trust a key: packages that it signed can be installed."""
    text = _text(file)
    wanted = fingerprint.replace(" ", "").upper()
    found = gpg.fingerprints_in(text)
    if wanted and [key.fingerprint for key in found] != [wanted]:
        raise InvalidInput(
            "this is not the key with that fingerprint",
            file,
            found=", ".join(key.fingerprint for key in found) or "no public key",
            allowed=wanted,
            outcome="No new key is trusted.",
        )
    taken = gpg.trust(text)
    lines = [f"trusted from now on: {key.fingerprint}  {key.name}" for key in taken]
    if not wanted:
        lines.append("compare the fingerprint with its owner's")
    data = [{"fingerprint": key.fingerprint, "name": key.name} for key in taken]
    say(data, as_json, *lines)


@keys_app.command()
def forget(
    fingerprint: Annotated[str, Argument(metavar="FINGERPRINT", help="The whole fingerprint.")],
    delete_secret: Annotated[
        bool, Option("--delete-secret", help="Also if it is your own: delete its secret key.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Stop trusting a key. Your own goes only with --delete-secret: it can never sign again."""
    known = {key.fingerprint: key for key in gpg.trusted()}
    wanted = fingerprint.replace(" ", "").upper()
    if wanted not in known:
        raise InvalidInput(
            "no such key is trusted here",
            fingerprint or '""',
            allowed=", ".join(sorted(known)),
            todo="`mvstack cache keys list` names them; give all 40 digits",
        )
    if known[wanted].own and not delete_secret:
        what, todo = "this is your own key, which signs here", "add --delete-secret if you mean it"
        raise Refused(what, wanted, todo=todo, outcome="Nothing was deleted.")
    gpg.forget(wanted)
    say({"forgotten": wanted}, as_json, f"no longer trusted: {wanted}")


def _text(file: str) -> bytes:
    """A key's file, from a path or a URL."""
    head, _, name = file.rpartition("/")
    is_url = "://" in file
    if is_url and "://" not in head:  # no path behind the host
        allowed = "https://host/…/site.asc"
        raise InvalidInput("this URL names no file", file, allowed=allowed)
    try:
        found = place(head).read(name) if is_url else Path(file).expanduser().read_bytes()
    except Unreachable as why:
        raise Missing("cannot be read", file, found=str(why)) from None
    except (OSError, RuntimeError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', error)}"
        todo = "give the file that `mvstack cache keys export --to` wrote"
        raise InvalidInput(what, file or '""', todo=todo) from None
    if found is None:
        raise InvalidInput("there is no such file", file)
    return found
