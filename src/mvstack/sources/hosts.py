"""Hosts that do not answer: each is waited for once, and for some minutes not again."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from mvstack.files import write_atomically

FORGET = 15 * 60.0  # seconds after which a silent host is asked again


class SilentHosts:
    """The hosts that did not answer lately, kept in the user's state between runs."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "silent-hosts.json"
        try:
            found = json.loads(self.file.read_text())
        except (OSError, ValueError):
            found = {}
        now = time.time()
        self._known: dict[str, tuple[float, str]] = {
            host: (row[0], row[1])
            for host, row in (found.items() if isinstance(found, dict) else ())
            if isinstance(row, list) and len(row) == 2 and 0 <= now - row[0] < FORGET
        }

    def why(self, host: str) -> str:
        """Why ``host`` is not asked now, with how long ago it was; "" when it may be asked."""
        if host not in self._known:
            return ""
        when, why = self._known[host]
        ago = max(int(time.time() - when), 0)
        return f"{host}: {why} ({ago} s ago; asked again after {FORGET / 60:.0f} min)"

    def silent(self, host: str, why: str) -> None:
        """Note that ``host`` did not answer."""
        self._known[host] = (time.time(), why)
        self._keep()

    def answered(self, host: str) -> None:
        """Note that ``host`` answers."""
        if self._known.pop(host, None):
            self._keep()

    def _keep(self) -> None:
        with contextlib.suppress(OSError):  # only this run remembers then
            write_atomically(self.file, json.dumps(self._known) + "\n")
