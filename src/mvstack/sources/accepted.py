"""Bytes that are not upstream's and that a person accepted: kept in the user's state alone."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

from pydantic import Field
from ruamel.yaml import YAML

from mvstack.files import write_atomically
from mvstack.model.base import Strict, validated
from mvstack.model.yamlfile import read_yaml


class Accepted(Strict):
    """One acceptance: which bytes, why, when, and under which name they are stored."""

    software: str
    version: str
    sha256: str
    reason: str
    when: str
    filename: str


class _File(Strict):
    accepted: list[Accepted] = Field(default_factory=list)


def state_dir() -> Path:
    """The user's state folder of mvstack, after the XDG convention."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "mvapich-stack"


def all_accepted() -> list[Accepted]:
    """Every acceptance of this user."""
    path = state_dir() / "accepted.yaml"
    return validated(_File, read_yaml(path)).accepted if path.is_file() else []


def accepted_for(software: str, version: str) -> Accepted | None:
    """What this user accepted for one version, whatever the case of its name; the latest."""
    found = [
        one
        for one in all_accepted()
        if (one.software.lower(), one.version) == (software.lower(), version)
    ]
    return found[-1] if found else None


def accept(software: str, version: str, sha256: str, reason: str, filename: str) -> Accepted:
    """Keep an acceptance; an earlier one for the same version is replaced."""

    new = Accepted(
        software=software,
        version=version,
        sha256=sha256,
        reason=reason,
        when=time.strftime("%FT%TZ", time.gmtime()),
        filename=filename,
    )
    kept = [
        one
        for one in all_accepted()
        if (one.software.lower(), one.version) != (software.lower(), version)
    ]
    text = io.StringIO()
    yaml = YAML()
    yaml.dump({"accepted": [one.model_dump() for one in [*kept, new]]}, text)
    head = "# Sources that are not upstream's bytes, accepted by `mvstack sources add`.\n"
    write_atomically(state_dir() / "accepted.yaml", head + text.getvalue())
    return new
