"""One installation at a time into one root, and nothing left running from one that was killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from mvstack.support import locks
from mvstack.support.errors import Locked, Missing
from mvstack.support.processes import end_marked

# In the environment of every build process, so that a later run knows it as ours.
MARK = "MVSTACK_BUILDS_IN"


@contextlib.contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the lock of ``root`` while the block runs.

    Raises Locked, saying who holds it, and Missing when the root cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(root / ".lock", wait=False))
        except locks.Held as held:
            raise Locked(
                "another process is installing into this root",
                str(root),
                found=held.holder
                or "unknown; `mvstack cache push`, which reads from here, leaves no name",
                todo="wait until it has ended, or give another --root",
            ) from None
        except OSError as error:
            raise Missing(
                f"the install root cannot be written to: {error.strerror}",
                str(root),
                todo="give another with --root or MVSTACK_ROOT, or run as the user who owns it",
            ) from None
        yield


def end_leftovers(tree: Path) -> int:
    """End build processes of a killed run that still write into ``tree``; how many there were."""
    return end_marked(MARK, str(tree))
