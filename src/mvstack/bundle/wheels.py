"""The Python packages that the pins name, each with its hash, as files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from mvstack.support.errors import SourceError
from mvstack.support.home import DATA
from mvstack.support.processes import follow

# What `./mvstack` sets itself up with.
OWN = ("build.txt", "runtime.txt")


def gather(target: Path, names: tuple[str, ...], note: Callable[[str], None]) -> None:
    """Download what requirements/``names`` pin for this Python and machine. Raises SourceError."""
    target.mkdir(parents=True, exist_ok=True)
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    said: list[str] = []

    def line(text: str) -> None:
        if text.strip():
            said.append(text.strip())
            note(text.strip())

    for name in names:
        said.clear()
        file = DATA / "requirements" / name
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-input", "--progress-bar", "off"),
            *("--disable-pip-version-check", "--require-hashes", "--no-deps"),
            *("--no-build-isolation", "--dest", str(target), "-r", str(file)),
        ]
        if name not in OWN:
            command += ["--only-binary", ":all:"]
        if follow(command, kept, line=line):
            wrong = [one for one in said if "error" in one.lower() or "No matching" in one]
            raise SourceError(
                "the Python packages that are pinned cannot be downloaded",
                str(file),
                found=" | ".join(wrong[-4:] or said[-3:]),
                todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
                "PIP_FIND_LINKS and PIP_CERT are honoured)",
            )
