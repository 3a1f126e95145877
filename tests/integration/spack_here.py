"""The pinned Spack for tests of recipes: cloned once for all of them, or a reason to skip."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from mvstack.builders.spack.clone import Clones, clones, python
from mvstack.builders.spack.isolated import Isolated
from mvstack.model.spack import spack_pins
from mvstack.support.errors import MvstackError

# An install root whose spack/<tag>/ holds the clones; they are made there if they are not.
ROOT = "MVSTACK_TEST_SPACK_ROOT"


def install_root() -> Path:
    """The install root below which Spack is cloned, once for all tests."""
    return Path(os.environ.get(ROOT) or Path(tempfile.gettempdir(), f"mvstack-spack-{os.getuid()}"))


@functools.cache
def _cloned() -> tuple[Clones, Path] | str:
    """The clones and their Python, or why they are missing: a silent server is asked once."""
    root = install_root()
    try:
        cloned = clones(root, spack_pins())
        return cloned, python(cloned.home)
    except MvstackError as error:
        return error.problems[0].message


def spack_here(state: Path) -> Isolated:
    """Spack with our recipes, its configuration in ``state``. Skips where it cannot be cloned."""
    found = _cloned()
    if isinstance(found, str):
        pytest.skip(f"skipped: unreachable: {found}")
    cloned, interpreter = found
    isolated = Isolated(cloned, interpreter, state=state, store=state / "store", root=state)
    isolated.write()
    return isolated


def run(isolated: Isolated, *words: str) -> subprocess.CompletedProcess[str]:
    """One spack command, to its end."""
    return subprocess.run(
        isolated.command(*words), env=isolated.environment(), capture_output=True, text=True
    )
