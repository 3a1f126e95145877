"""The Python that Spack runs on: an environment of its own with the pinned solver, clingo."""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from mvstack.builders.following import follow_into, lines_of
from mvstack.builders.spack.clone import REQUIREMENTS, only_one
from mvstack.support.errors import Missing, SourceError
from mvstack.support.files import write_atomically


def python(home: Path, note: Callable[[str], None] = lambda _: None) -> Path:
    """The interpreter below ``home``, made now if it is not there or its pins have changed.

    Every package is installed by its hash. Raises SourceError when pip cannot have one, Missing
    when no environment can be made here.
    """
    folder = home.resolve() / "python"  # the same through whatever link it is reached
    program, ready = folder / "bin" / "python", folder / ".ready"
    wanted = f"{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()} {folder}"

    def is_ready() -> bool:
        return program.exists() and ready.is_file() and ready.read_text().strip() == wanted

    if not is_ready():
        with only_one(home):
            if not is_ready():  # nobody else has made it meanwhile
                _make(folder, program, home / "python.log", note)
                write_atomically(ready, wanted + "\n")
    return program


def _make(folder: Path, program: Path, log: Path, note: Callable[[str], None]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    note("making Spack's Python environment")
    if said := _failed([sys.executable, "-m", "venv", str(folder)], log, note):
        raise Missing(
            "no Python environment can be made for Spack",
            str(log),
            found=said,
            todo="Debian: apt-get install python3-venv",
        )
    note("installing clingo, Spack's solver")
    pip = [str(program), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    pip += ["--progress-bar", "off", "--only-binary", ":all:", "--require-hashes"]
    if said := _failed([*pip, "-r", str(REQUIREMENTS)], log, note):
        raise SourceError(
            "what Spack's solver needs could not be installed",
            str(REQUIREMENTS),
            found=said,
            todo="the same command again once pip can reach its index (PIP_INDEX_URL, "
            f"PIP_FIND_LINKS and PIP_CERT are honoured); log {log}",
        )


def _failed(command: list[str], log: Path, note: Callable[[str], None]) -> str:
    """Run ``command``; its last words when it fails, else ""."""
    dropped = ("PYTHON", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}

    def line(text: str) -> None:
        if text.strip():
            note(text)

    status = follow_into(log, command, kept, line, lambda: None)
    return (" | ".join(lines_of(log)[1:][-3:]) or f"status {status}") if status else ""
