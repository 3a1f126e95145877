"""Put a file that a person has into the mirror, with the care that this takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mvstack.sources.accepted import accept, forget
from mvstack.sources.files import open_regular, sha256_of
from mvstack.sources.spec import SHA256, SourceSpec
from mvstack.sources.store import Entry, Store
from mvstack.support.errors import InvalidInput, Problem, SourceError, relative


def meant(specs: list[SourceSpec], file: Path) -> SourceSpec:
    """The one of ``specs`` that ``file`` is: the only one, or of its name. Raises InvalidInput."""
    same = [spec for spec in specs if spec.filename == file.name]
    if len(specs) == 1 or len(same) == 1:
        return (same or specs)[0]
    raise InvalidInput(
        f"{len(specs)} sources have that name; say which one {file.name} is",
        "--as",
        allowed=", ".join(f"{spec.name}:{spec.filename}" for spec in specs),
        todo=f"mvstack sources add {file} --as {specs[0].name}:{specs[0].filename}",
    )


def add_source(
    store: Store, spec: SourceSpec, file: Path, accept_hash: str | None, reason: str | None
) -> dict[str, Any]:
    """Store ``file`` as the source of ``spec``; other bytes than those listed only when accepted.

    Raises SourceError when the bytes are not those listed and were not accepted, InvalidInput
    when the acceptance is not one (no reason, no SHA-256) or ``file`` is no regular file.
    """
    wanted, why = _acceptance(accept_hash, reason)
    with open_regular(file):
        found, size = sha256_of(file), file.stat().st_size
    _check(spec, file, found, wanted)
    listed = found in spec.hashes
    note = spec.note(found) if listed else f"not upstream's bytes: {why}"
    place = f"added by hand, {file.name!r}"
    entry = Entry(found, spec.filename, spec.name, size, place, note)
    stored = store.add(file, entry, private=bool(spec.licence_page))
    store.link_easybuild(spec.software, spec.filename, found)
    if not listed:
        accept(spec.software, spec.version, found, why, spec.filename)
    else:  # the recipe's own bytes are wanted again
        gone = forget(spec.software, spec.version, spec.filename)
        ended = [f"no longer accepted: {one.sha256}" for one in gone]
        note = "; ".join(part for part in (note, *ended) if part)
    return {
        "source": spec.name,
        "file": spec.filename,
        "sha256": found,
        "upstream": listed and spec.upstream(found),
        "note": note,
        "path": str(stored),
    }


def _acceptance(accept_hash: str | None, reason: str | None) -> tuple[str, str]:
    """The hash that is accepted and why; both "" when nothing is."""
    why = " ".join((reason or "").split())
    if accept_hash is None:
        if why:
            what = "--reason says why other bytes are accepted, and no --accept-hash is given"
            todo = "add --accept-hash SHA256, or leave --reason out"
            raise InvalidInput(what, "--reason", todo=todo)
        return "", ""
    wanted = accept_hash.strip().lower().removeprefix("sha256:")
    problems = []
    if not SHA256.fullmatch(wanted):
        what, todo = "a SHA-256 has 64 hexadecimal digits", "`sha256sum FILE` prints it"
        problems.append(Problem(what, "--accept-hash", found=accept_hash, todo=todo))
    if not why:
        because = "module help and report tell users why these are not upstream's bytes"
        problems.append(Problem("it needs --reason TEXT", "--accept-hash", because=because))
    if problems:
        raise InvalidInput(*problems, outcome="Nothing was added.")
    return wanted, why


def _check(spec: SourceSpec, file: Path, found: str, wanted: str) -> None:
    """Raise SourceError unless the bytes are listed or accepted."""
    if wanted and found != wanted:
        raise SourceError(
            "the file does not have the hash that is accepted",
            relative(file),
            found=f"sha256 {found}",
            allowed=f"sha256 {wanted}",
            todo="make sure which file is meant: compare the output of `sha256sum`",
            outcome="Nothing was added.",
        )
    if not wanted and found not in spec.hashes:
        refused = spec.refused.get(found, "")
        raise SourceError(
            f"the file is not the {spec.filename} that the recipe lists",
            relative(file),
            found=f"sha256 {found}" + (f" ({refused})" if refused else ""),
            allowed=f"{spec.wanted} ({spec.recipe})",
            because=refused,
            todo="get upstream's file; for other bytes on purpose add --accept-hash "
            f"{found} --reason TEXT",
            outcome="Nothing was added.",
        )
