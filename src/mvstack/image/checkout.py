"""Who builds, with what, and from which commit: what provenance tells."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from mvstack import __version__
from mvstack.image import packer
from mvstack.support.home import DATA
from mvstack.support.processes import run


def commit() -> tuple[str, bool, int]:
    """The commit of this checkout, whether files differ from it, and its time (seconds since 1970).

    ("", True, 0) where this is not a git checkout.
    """
    name = _git("rev-parse", "HEAD")
    changed = bool(_git("status", "--porcelain"))
    return name, changed or not name, int(_git("log", "-1", "--format=%ct") or 0)


def _git(*words: str) -> str:
    """What git says of this checkout, "" where it cannot."""
    try:
        done = run(["git", "-C", DATA, *words])
    except FileNotFoundError:
        return ""
    return done.text.strip() if done.ok else ""


def repository() -> str:
    """Where this checkout was cloned from, without who did; "" from nowhere that others reach."""
    return public_url(_git("remote", "get-url", "origin"))


def public_url(remote: str) -> str:
    """A git remote as a URL without user, password and query; "" for a folder of this machine."""
    if found := re.fullmatch(r"(?:[\w.-]+@)?([\w.-]+):(?!/)(\S+)", remote):  # git@host:path
        return f"git+ssh://{found[1]}/{found[2]}"
    try:
        parts = urlsplit(remote)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if parts.scheme not in ("https", "http", "ssh", "git") or not parts.hostname:
        return ""
    scheme = parts.scheme if parts.scheme == "git" else f"git+{parts.scheme}"
    return f"{scheme}://{parts.hostname}{port}{parts.path}"


def by() -> dict[str, Any]:
    """Who builds, and with what, as provenance tells it: of this machine, now.

    The builder is a URI: MVSTACK_BUILDER, else this machine's name.
    """
    found = ".".join(map(str, packer.version()))
    builder = (
        os.environ.get("MVSTACK_BUILDER") or f"urn:mvapich-stack:builder:{os.uname().nodename}"
    )
    return {"builder": builder, "versions": {"mvstack": __version__, "packer": found}}
