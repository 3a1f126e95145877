"""Hosts that do not answer: each is waited for once, and for some minutes not again."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from pydantic import TypeAdapter

from mvstack.support.files import write_atomically

FORGET = 10 * 60.0  # seconds after which a silent host is asked again
_KNOWN = TypeAdapter(dict[str, tuple[float, str]])


class SilentHosts:
    """The hosts that did not answer lately, kept in the user's state between runs.

    A host is ``name:port``, or any other name of a place that answers or does not ("PyPI").
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "silent-hosts.json"
        self._known: dict[str, tuple[float, str]] = {}
        with contextlib.suppress(OSError, ValueError):  # a damaged file: it only saves time
            self._known = _KNOWN.validate_json(self.file.read_bytes())

    def why(self, host: str) -> str:
        """Why ``host`` is not asked now, with how long ago it was; "" when it may be asked."""
        when, why = self._known.get(host, (0.0, ""))
        ago = time.time() - when
        if not 0 <= ago < FORGET:  # also when the clock was set back
            return ""
        left = f"{ago:.0f} s ago; not asked again for {(FORGET - ago) / 60:.0f} min"
        return f"{host}: {why} ({left}, `mvstack sources fetch --retry` asks now)"

    def silent(self, host: str, why: str) -> None:
        """Note that ``host`` did not answer."""
        self._known[host] = (time.time(), why)
        self._write()

    def answered(self, host: str) -> None:
        """Note that ``host`` answers."""
        if self._known.pop(host, None):
            self._write()

    def forget(self) -> None:
        """Ask every host again."""
        if self._known:
            self._known = {}
            self._write()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # then only this run remembers
            write_atomically(self.file, json.dumps(self._known) + "\n")
