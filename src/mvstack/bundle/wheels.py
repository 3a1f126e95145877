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


def gather(target: Path, names: tuple[str, ...], note: Callable[[str], None]) -> int:
    """Download what requirements/``names`` pin for this Python and machine; how many files.

    Raises SourceError with pip's own words when one cannot be obtained.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = DATA / "requirements" / name
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-input", "--progress-bar", "off"),
            *("--disable-pip-version-check", "--require-hashes", "--no-deps"),
            *("--no-build-isolation", "--dest", str(target), "-r", str(file)),
        ]
        if name not in OWN:
            command += ["--only-binary", ":all:"]
        said: list[str] = []

        def line(text: str, said: list[str] = said) -> None:
            if text.strip():
                said.append(text.strip())
                note(text.strip())

        kept = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
        if follow(command, kept, line=line):
            raise SourceError(
                "the Python packages that are pinned cannot be downloaded",
                str(file),
                found=" | ".join(_telling(said)),
                todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
                "PIP_FIND_LINKS and PIP_CERT are honoured)",
            )
    return sum(1 for _ in target.iterdir())


def _telling(said: list[str]) -> list[str]:
    """The lines in which pip says what is wrong; its last ones if none does."""
    wrong = [line for line in said if "error" in line.lower() or "No matching" in line]
    return wrong[-4:] or said[-3:]
