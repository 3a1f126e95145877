"""Run Spack's commands for one tree, with progress, a log, and errors that a person can act on."""

import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mvstack.builders.base import Note
from mvstack.builders.following import follow_into, lines_of
from mvstack.builders.spack.isolated import Isolated
from mvstack.support.errors import BuildFailed
from mvstack.support.home import DATA

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_INSTALLING = re.compile(r"^==> Installing (\S+)-(\w{32})(?: \[(\d+)/(\d+)\])?")
_EXTRACTING = re.compile(r"^==> Extracting \S+-(\w{32}) from binary cache")
_PHASE = re.compile(r"^==> \S+: Executing phase: '(.+)'")
_DONE = re.compile(r"^==> \S+: Successfully installed \S+-(\w{32})")
_TIMES = re.compile(r"(\w[\w-]*): ((?:\d+h )?(?:\d+m )?[\d.]+)s")
_ERROR = re.compile(r"^(?:==> )?Error: (.*)")
_FAILED = re.compile(r"^==> (?:Warning|Error): \S+-(\w{32}) failed to install")
_LOG = re.compile(r"^\s*(/\S+spack-build-\S*?out\.txt)\s*$")


@dataclass
class Package:
    """How the installation of one package went: its phases with their seconds."""

    hash: str
    count: str = ""
    phase: str = ""
    cached: bool = False
    done: bool = False
    steps: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass
class Said:
    """Everything that one run said; ``on`` is told of each change of a package."""

    on: Callable[[str, Package], object] = lambda _event, _package: None
    packages: dict[str, Package] = field(default_factory=dict)
    current: Package | None = None
    errors: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def line(self, raw: str) -> str:
        """Take in one line; the line without colours."""
        text = _COLOUR.sub("", raw)
        if found := _INSTALLING.match(text):
            known = self.packages.get(found[2])
            if not (known and known.done):  # of a binary, Spack says it after that has ended
                self._begin(found[2], f"{found[3]} of {found[4]}" if found[3] else "")
        elif found := _EXTRACTING.match(text):
            package = self.packages.get(found[1]) or self._begin(found[1])
            package.cached, package.phase = True, "unpacking a binary"
            self.on("phase", package)
        elif (found := _PHASE.match(text)) and self.current:
            self.current.phase = found[1]
            self.on("phase", self.current)
        elif (found := _DONE.match(text)) and found[1] in self.packages:
            self.current = self.packages[found[1]]
            self.current.done = True
        elif self.current and self.current.done and not self.current.steps and "Total:" in text:
            times = {name.lower(): _seconds(value) for name, value in _TIMES.findall(text)}
            self.current.seconds = times.pop("total", 0.0)
            self.current.steps = times
            self.on("done", self.current)
            self.current = None
        elif found := _FAILED.match(text):
            self.failed.append(found[1])
        elif found := _ERROR.match(text):
            self.errors.append(found[1])
        elif found := _LOG.match(text):
            self.logs.append(found[1])
        return text

    def _begin(self, key: str, count: str = "") -> Package:
        self.current = self.packages[key] = Package(key, count)
        self.on("begin", self.current)
        return self.current


def _seconds(text: str) -> float:
    """``1h 2m 3.5`` in seconds."""
    total = 0.0
    for part in text.split():
        unit = {"h": 3600.0, "m": 60.0}.get(part[-1])
        total += float(part[:-1]) * unit if unit else float(part)
    return round(total, 2)


INSIDE = Path(__file__).resolve().parent / "inside"
# beside the recipes, because it serves a Spack of one's own too
VERIFY = DATA / "spack-repo" / "verify.py"
# What a solver or a package prints once, however long it takes, is not worth more lines than this.
LAST = 6


@dataclass(frozen=True)
class Spack:
    """The Spack of one tree and the folder of its logs."""

    isolated: Isolated
    logs: Path

    def run(self, name: str, *words: str, note: Note = lambda _: None) -> None:
        """Run one spack command, its output in ``<logs>/spack-<name>.log``.

        Raises BuildFailed with Spack's own words when it fails.
        """
        if status := self.status(name, words, Said(), note):
            raise self.failure(name, status)

    def log(self, name: str) -> Path:
        """The log file of a command."""
        return self.logs / f"spack-{name}.log"

    def status(
        self,
        name: str,
        words: tuple[str, ...],
        said: Said,
        note: Note = lambda _: None,
        tick: Callable[[], object] = lambda: None,
    ) -> int:
        """Run one spack command and take in what it says; its exit status."""

        def line(raw: str) -> str:
            text = said.line(raw)
            if text.strip():
                note(text.strip().removeprefix("==> "))
            return text

        command, environment = self.isolated.command(*words), self.isolated.environment()
        return follow_into(self.log(name), command, environment, line, tick)

    def ask(
        self, name: str, folder: Path, request: dict[str, Any], note: Note = lambda _: None
    ) -> dict[str, Any]:
        """Run inside/<name>.py, or verify.py, over the environment in ``folder``; its answer."""
        with tempfile.TemporaryDirectory(prefix="mvstack-spack-") as place:
            asked, answer = Path(place, "request.json"), Path(place, "answer.json")
            asked.write_text(json.dumps(request))
            script = INSIDE / f"{name}.py" if name != "verify" else VERIFY
            words = ("-e", str(folder), "python", str(script), str(asked), str(answer))
            self.run(name, *words, note=note)
            found: dict[str, Any] = json.loads(answer.read_text())
            return found

    def failure(self, name: str, status: int) -> BuildFailed:
        """The error of a command that failed, out of what it said."""
        lines = lines_of(self.log(name))[1:]
        # the solver's reasons stand below its error
        first = next((n for n, one in enumerate(lines) if "Error: " in one), -LAST)
        return BuildFailed(
            f"`spack {name}` failed (status {status})",
            str(self.log(name)),
            found=" | ".join(dict.fromkeys(lines[first:]))[:1500],
            todo="read the log named above, correct the cause, and run the same command again",
        )
