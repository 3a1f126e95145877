"""One test file at a time installs below the default root: they run side by side."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_writer() -> Iterator[None]:
    """Wait until no other test installs there; `mvstack install` itself would be refused."""
    path = Path(tempfile.gettempdir(), f"mvstack-tests-{os.getuid()}.lock")
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
