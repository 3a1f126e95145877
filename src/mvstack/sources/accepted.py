"""Bytes that are not upstream's and that a person accepted: kept in the user's state alone."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

from pydantic import Field
from ruamel.yaml import YAML

from mvstack.model.base import Strict, validated
from mvstack.model.yamlfile import read_yaml
from mvstack.support import locks
from mvstack.support.errors import SourceError
from mvstack.support.files import write_atomically


class Accepted(Strict):
    """One acceptance: which bytes, why, when (UTC), and under which name they are stored."""

    software: str
    version: str
    sha256: str
    reason: str
    when: str
    filename: str

    def is_for(self, software: str, version: str, filename: str | None = None) -> bool:
        """Whether this is of that version (and file), whatever the case of its name."""
        same = (self.software.lower(), self.version) == (software.lower(), version)
        return same and filename in (None, self.filename)


_HEAD = """\
# Not upstream's bytes, accepted on purpose by `mvstack sources add --accept-hash`.
# `mvstack sources forget NAME@VERSION` takes one back.
"""


class _File(Strict):
    accepted: list[Accepted] = Field(default_factory=list)


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


def accepted_for(software: str, version: str, filename: str | None = None) -> Accepted | None:
    """What this user accepted for one version (and file); the latest."""
    found = [one for one in all_accepted() if one.is_for(software, version, filename)]
    return found[-1] if found else None


def accept(software: str, version: str, sha256: str, reason: str, filename: str) -> None:
    """Keep an acceptance; an earlier one for the same file is replaced."""
    new = Accepted(
        software=software,
        version=version,
        sha256=sha256,
        reason=" ".join(reason.split()),
        when=time.strftime("%FT%TZ", time.gmtime()),
        filename=filename,
    )
    _replaced(software, version, filename, [new])


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
