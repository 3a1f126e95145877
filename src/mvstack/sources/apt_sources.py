"""Which Debian archives this machine's apt uses: one-line and deb822 sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FALLBACK = "http://deb.debian.org/debian"
# Releases and the names that move along them; suites of security, updates or backports are other
# archives or hold no .orig of a whole release.
SUITES = (
    *("bullseye", "bookworm", "trixie", "forky", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
)


def archives(etc: Path = Path("/etc/apt")) -> list[str]:
    """URIs of the Debian archives in ``etc``, in order, without a slash at the end.

    The public archive when there is none: on Ubuntu or where apt was never set up.
    """
    files = [etc / "sources.list"]
    files += sorted(p for p in etc.glob("sources.list.d/*") if p.suffix in (".list", ".sources"))
    found: list[str] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        entries = _stanzas(text) if path.suffix == ".sources" else _lines(text)
        for uris, suites in entries:
            if any(suite in SUITES for suite in suites):
                # mirror:// and cdrom: name no archive that a source can be read from
                found += [uri.rstrip("/") for uri in uris if uri.startswith(("http", "file:"))]
    return list(dict.fromkeys(found)) or [FALLBACK]


def _lines(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """``deb [options] URI suite component…``."""
    for line in text.splitlines():
        match = re.match(r"\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
        if match:
            yield [match[1]], [match[2]]


def _stanzas(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Blocks of ``Field: value``, values going on over lines that begin with a space."""
    for block in re.split(r"\n\s*\n", text):
        values: dict[str, str] = {}
        key = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t"):
                values[key] = values.get(key, "") + " " + line.strip()
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                values[key] = value.strip()
        if values.get("enabled", "yes").lower() not in ("no", "false", "0"):
            yield values.get("uris", "").split(), values.get("suites", "").split()
