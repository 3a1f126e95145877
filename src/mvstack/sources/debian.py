"""The Debian source archive: its .orig tarballs are often upstream's own bytes; the hash proves it.

Asked are the archives that MVSTACK_DEBIAN_ARCHIVE names, else those that this machine's apt uses.
"""

import os
import re

from mvstack.sources.spec import Debian
from mvstack.support.processes import run

SETTING = "MVSTACK_DEBIAN_ARCHIVE"
UNKNOWN = f"Debian source archive: apt names none here, and {SETTING} is not set"
# Releases and the names that move along them: suites of security fixes, updates or backports are
# in other archives or lack the .orig of a release.
SUITES = (
    *("bullseye", "bookworm", "trixie", "forky", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
)


def archives() -> list[str]:
    """The Debian archives to ask, in order, as URLs or folders; [] when none is known."""
    if named := os.environ.get(SETTING, "").split():
        return [uri.rstrip("/") for uri in named]
    try:
        done = run(["apt-get", "update", "--print-uris"], limit=30)
    except OSError:
        return []
    return named_by_apt(done.text)


def named_by_apt(uris: str) -> list[str]:
    """The Debian archives among what `apt-get update --print-uris` prints."""
    found = re.findall(r"^'((?:https?|file):\S+?)/+dists/([^/\s]+)/InRelease'", uris, re.MULTILINE)
    debian = dict.fromkeys(uri for uri, suite in found if suite in SUITES)
    return [re.sub(r"^file:/+", "/", uri) for uri in debian]


def place_in(archive: str, wanted: Debian) -> str:
    """Where ``archive`` has the file of ``wanted``."""
    prefix = wanted.package[: 4 if wanted.package.startswith("lib") else 1]
    return f"{archive}/pool/main/{prefix}/{wanted.package}/{wanted.file}"
