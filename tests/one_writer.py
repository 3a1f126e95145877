"""One test file at a time installs below the default root, or pushes from there.

Files run side by side, and either is refused, or refuses, while another one is at it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_writer() -> Iterator[None]:
    """Wait until no other test is at it."""
    path = Path(tempfile.gettempdir(), f"mvstack-tests-{os.getuid()}.lock")
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
