"""Run Spack's commands for one tree, with progress, a log, and errors that a person can act on."""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvstack.builders.spack.isolated import Isolated
from mvstack.builders.spack.said import Said
from mvstack.support.errors import BuildFailed
from mvstack.support.processes import follow

INSIDE = Path(__file__).resolve().parent / "inside"
Note = Callable[[str], None]
# What a solver or a package prints once, however long it takes, is not worth more lines than this.
LAST = 6


@dataclass(frozen=True)
class Spack:
    """The Spack of one tree and the folder of its logs."""

    isolated: Isolated
    logs: Path

    def run(
        self,
        name: str,
        *words: str,
        note: Note = lambda _: None,
        tick: Callable[[], object] = lambda: None,
        line: Callable[[str], object] = lambda _: None,
    ) -> Said:
        """Run one spack command, its output in ``<logs>/spack-<name>.log``; what it said.

        Raises BuildFailed with Spack's own words when it fails.
        """
        log, said = self.log(name), Said()
        status = self.status(log, words, said, note=note, tick=tick, line=line)
        if status:
            raise self.failure(name, status, log, said)
        return said

    def log(self, name: str) -> Path:
        """The log file of a command."""
        return self.logs / f"spack-{name}.log"

    def status(
        self,
        log: Path,
        words: tuple[str, ...],
        said: Said,
        *,
        note: Note = lambda _: None,
        tick: Callable[[], object] = lambda: None,
        line: Callable[[str], object] = lambda _: None,
    ) -> int:
        """Run one spack command and take in what it says; its exit status."""
        command = self.isolated.command(*words)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", buffering=1) as stream:  # a line at a time, so that it can be followed
            stream.write(shlex.join(command) + "\n")

            def each(raw: str) -> None:
                text = said.line(raw)
                stream.write(text + "\n")
                if text.strip():
                    note(text.strip().removeprefix("==> "))
                line(text)

            return follow(command, self.isolated.environment(), line=each, tick=tick, cwd=self.logs)

    def ask(self, name: str, folder: Path, request: dict[str, Any], note: Note) -> dict[str, Any]:
        """Run inside/<name>.py over the environment in ``folder``; its answer."""
        with tempfile.TemporaryDirectory(prefix="mvstack-spack-") as place:
            asked, answer = Path(place, "request.json"), Path(place, "answer.json")
            asked.write_text(json.dumps(request))
            script = str(INSIDE / f"{name}.py")
            words = ("-e", str(folder), "python", script, str(asked), str(answer))
            self.run(name, *words, note=note)
            found: dict[str, Any] = json.loads(answer.read_text())
            return found

    def failure(self, name: str, status: int, log: Path, said: Said) -> BuildFailed:
        """The error of a command that failed, out of what it said."""
        lines = [one.strip() for one in log.read_text(errors="replace").splitlines()[1:]]
        lines = [one for one in lines if one]
        # the solver's reasons stand below its error
        first = next((n for n, one in enumerate(lines) if "Error: " in one), -LAST)
        kept = list(dict.fromkeys(lines[first:]))
        return BuildFailed(
            f"`spack {name}` failed (status {status})",
            str(log),
            found=" | ".join(kept)[:1500],
            todo="read the log named above; the same command goes on once it is mended",
        )
