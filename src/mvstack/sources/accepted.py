"""Files that a person adds to the mirror, and what of them is accepted though not upstream's.

Acceptances are kept in the user's state alone.
"""

import io
import os
import time
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from mvstack.model.base import EMPTY_LIST, Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.sources.spec import SHA256, SourceSpec
from mvstack.sources.store import Entry, Store
from mvstack.support import locks
from mvstack.support.errors import InvalidInput, Problem, SourceError, relative
from mvstack.support.files import open_regular, sha256_of, write_atomically


class Accepted(Strict):
    """One acceptance: which bytes, why, when (UTC), and under which name they are stored.

    ``position`` is that of the file among the sources of its recipe.
    """

    software: str
    version: str
    sha256: str
    reason: str
    when: str
    filename: str
    position: int = 0

    def is_for(self, software: str, version: str, filename: str | None = None) -> bool:
        """Whether this is of that version (and file), whatever the case of its name."""
        same = (self.software.lower(), self.version) == (software.lower(), version)
        return same and filename in (None, self.filename)


_HEAD = """\
# Not upstream's bytes, accepted on purpose by `mvstack sources add --accept-hash`.
# `mvstack sources forget NAME@VERSION` takes one back.
"""


class _File(Strict):
    accepted: list[Accepted] = EMPTY_LIST


def state_dir() -> Path:
    """The user's state folder of mvstack, after the XDG convention."""
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():  # the convention: a relative path is to be ignored
        base = Path.home() / ".local" / "state"
    return base / "mvapich-stack"


def accepted_file() -> Path:
    """Where acceptances are kept."""
    return state_dir() / "accepted.yaml"


def all_accepted() -> list[Accepted]:
    """Every acceptance of this user. Raises InvalidInput when the file was broken by hand."""
    path = accepted_file()
    return validated(_File, read_yaml(path)).accepted if path.is_file() else []


def accepted_for(software: str, version: str, filename: str) -> Accepted | None:
    """What this user accepted for one file of a version."""
    found = [one for one in all_accepted() if one.is_for(software, version, filename)]
    return found[-1] if found else None


def accept(new: Accepted) -> None:
    """Keep an acceptance; an earlier one for the same file is replaced."""
    _replaced(new.software, new.version, new.filename, [new])


def forget(software: str, version: str, filename: str | None = None) -> list[Accepted]:
    """Take acceptances back; those that were there. The files stay in the mirror."""
    return _replaced(software, version, filename, [])


def _replaced(
    software: str, version: str, filename: str | None, new: list[Accepted]
) -> list[Accepted]:
    """Keep ``new`` instead of what was accepted for a file; what that was. Raises SourceError."""
    path = accepted_file()
    try:
        with locks.hold(path.with_name(".accepted.lock")):  # two `add` at once lose no line
            known = all_accepted()
            gone = [one for one in known if one.is_for(software, version, filename)]
            if gone or new:
                kept = [one for one in known if one not in gone]
                text = io.StringIO()
                YAML().dump({"accepted": [one.model_dump() for one in [*kept, *new]]}, text)
                write_atomically(path, _HEAD + text.getvalue())
    except OSError as error:
        what = f"the file of accepted hashes cannot be written: {error.strerror}"
        todo = "set XDG_STATE_HOME to a folder of yours that can be written"
        raise SourceError(what, str(error.filename or path), todo=todo) from None
    return gone


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
    if not size:
        raise InvalidInput("this file is empty", str(file), outcome="Nothing was added.")
    _check(spec, file, found, wanted)
    listed = found in spec.hashes
    if not listed and spec.position < 0:
        what = "other bytes cannot be accepted of a file of an extension or component"
        todo, outcome = "add upstream's file", "Nothing was added."
        raise InvalidInput(what, spec.recipe, todo=todo, outcome=outcome)
    note = spec.note(found) if listed else f"not upstream's bytes: {why}"
    place = f"added by hand, {file.name!r}"
    entry = Entry(found, spec.filename, spec.name, size, place, note)
    stored = store.add(file, entry, private=bool(spec.known.licence_page))
    store.link_easybuild(spec.software, spec.filename, found)
    if not listed:
        same = {"software": spec.software, "version": spec.version, "filename": spec.filename}
        when = time.strftime("%FT%TZ", time.gmtime())
        accept(Accepted(**same, position=spec.position, sha256=found, reason=why, when=when))
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
    if found == wanted or (not wanted and found in spec.hashes):
        return
    what, allowed = "the file does not have the hash that is accepted", f"sha256 {wanted}"
    todo = "make sure which file is meant: compare the output of `sha256sum`"
    said, because = f"sha256 {found}", ""
    if not wanted:
        what = f"the file is not the {spec.filename} that the recipe lists"
        allowed, (said, because) = f"{spec.wanted} ({spec.recipe})", spec.refusal(found)
        todo = "get upstream's file; for other bytes on purpose add --accept-hash "
        todo += f"{found} --reason TEXT"
    where, outcome = relative(file), "Nothing was added."
    raise SourceError(
        what, where, found=said, allowed=allowed, because=because, todo=todo, outcome=outcome
    )
