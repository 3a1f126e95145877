"""The only way that discovery sees a machine: files below a root, and the outputs of tools.

Below ``/`` tools are run. Below any other root nothing is run: outputs come from
``<root>/mvstack-capture/``, and a tool that is not there counts as absent. Every reader returns
None or an empty list for what is absent; none of them raises for the state of the machine.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mvstack.support.processes import run

CAPTURE = "mvstack-capture"
LIMIT = 1 << 20
"""Bytes read of one file: /proc/cpuinfo of 512 threads is about 0.8 MB."""

TIMEOUT = 5.0
"""Seconds a tool may take: a controller that is down makes some wait for minutes."""

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where ldconfig is; often not on a user's PATH."""


def capture_name(tool: str, args: Iterable[str]) -> str:
    """The file of a tool's output: its name and arguments, joined by dashes, without slashes."""
    return re.sub(r"[^A-Za-z0-9._=,+-]", "_", "-".join([tool, *args])) + ".txt"


@dataclass(frozen=True)
class Output:
    """What a tool printed on both streams, and how it ended."""

    text: str
    status: int = 0
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool ended by itself and with success."""
        return self.status == 0 and not self.timed_out


def ask(command: list[str], timeout: float = TIMEOUT) -> Output | None:
    """Run ``command``; None when it cannot be started (not executable, wrong architecture)."""
    try:
        done = run(command, env={**os.environ, "LC_ALL": "C"}, limit=timeout, most=LIMIT)
    except (OSError, ValueError):
        return None
    return Output(done.said, done.status, done.timed_out)


@dataclass
class Seen:
    """All that was looked at, for ``capture``."""

    texts: dict[str, str] = field(default_factory=dict)
    folders: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    outputs: dict[str, Output] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


class View:
    """A machine below ``root``; paths are given as on that machine, with a leading slash."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.live = self.root == Path("/")
        self.seen = Seen()
        self._kept: dict[str, Output | None] = {}
        self._captured = self.root / CAPTURE
        self._environment = dict(os.environ) if self.live else self._captured_environment()
        if not self.live:
            self.seen.denied.update(self._captured_lines("denied.txt"))

    @property
    def tools_known(self) -> bool:
        """Whether it is known which tools this machine has (else their absence says nothing)."""
        return self.live or self._captured.is_dir()

    def text(self, path: str) -> str | None:
        """The text of a file, undecodable bytes replaced; None when it cannot be read."""
        found = self._inside(path)
        if found is None:
            return None
        try:
            with found.open("rb") as file:
                text = file.read(LIMIT).decode("utf-8", "replace")
        except PermissionError:
            self.seen.denied.add(path)
            return None
        except OSError:
            return None
        self.seen.texts[path] = text
        return text

    def word(self, path: str) -> str:
        """A one-line file without the white space around it; "" when it cannot be read."""
        return (self.text(path) or "").strip()

    def names(self, path: str) -> list[str]:
        """The names in a folder, in natural order (mlx5_2 before mlx5_10); [] when absent."""
        found = self._inside(path)
        if found is None:
            return []
        try:
            # A name that cannot be printed is no device's; it would not survive JSON either.
            there = [entry.name for entry in found.iterdir() if entry.name.isprintable()]
            names = sorted(there, key=_natural)
        except PermissionError:
            self.seen.denied.add(path)
            return []
        except OSError:
            return []
        self.seen.folders[path] = names
        return names

    def link(self, path: str) -> str:
        """The last part of a symbolic link's target, e.g. a driver's name; "" when there is none.

        The target itself is not looked at, so a link may dangle.
        """
        parent = self._inside(str(Path(path).parent))
        if parent is None:
            return ""
        try:
            target = str((parent / Path(path).name).readlink())
        except PermissionError:
            self.seen.denied.add(path)
            return ""
        except OSError:
            return ""
        if not target.isprintable():
            return ""
        self.seen.links[path] = target
        return Path(target).name

    def exists(self, path: str) -> bool:
        """Whether there is a file, folder or device of this name."""
        found = self._inside(path)
        try:
            there = found is not None and found.exists()
        except OSError:
            return False
        if there:
            self.seen.present.add(path)
        return there

    def environment(self, name: str) -> str:
        """An environment variable; "" when it is not set."""
        value = self._environment.get(name, "")
        value = value if value.isprintable() else ""
        if value:
            self.seen.environment[name] = value
        return value

    def which(self, tool: str) -> str:
        """The path of a tool on PATH (or in an sbin folder), or ""."""
        if self.live:
            search = os.pathsep.join([os.environ.get("PATH", os.defpath), *SBIN])
            path = shutil.which(tool, path=search) or ""
        else:
            path = self._captured_word(f"which-{capture_name(tool, [])}")
        if not path.startswith("/") or not path.isprintable():
            return ""
        self.seen.paths[tool] = path
        return path

    def ask(self, tool: str, *args: str) -> Output | None:
        """What ``tool`` printed (both streams); None when this machine has no such tool."""
        name = capture_name(tool, args)
        if name not in self._kept:
            self._kept[name] = self._ask(tool, args, name)
        output = self._kept[name]
        if output is not None:
            self.seen.outputs[name] = output
        return output

    def say(self, tool: str, *args: str) -> str:
        """The text of a tool that succeeded, otherwise ""."""
        output = self.ask(tool, *args)
        return output.text if output is not None and output.ok else ""

    def ask_together(self, commands: Iterable[tuple[str, ...]]) -> None:
        """Run these now, side by side, so that one slow tool does not add to another."""
        wanted = [command for command in commands if self.live]
        if wanted:
            with ThreadPoolExecutor(max_workers=8) as pool:
                list(pool.map(lambda command: self.ask(*command), wanted))

    def _ask(self, tool: str, args: tuple[str, ...], name: str) -> Output | None:
        if self.live:
            path = self.which(tool)
            return ask([path, *args]) if path else None
        text = self._captured_text(name)
        if text is None:
            return None
        status = self._captured_word(f"{name}.status")
        return Output(text, 0 if not status else _status(status), status == "timeout")

    def _inside(self, path: str) -> Path | None:
        """``path`` below the root; None when a link in it leads out of the root."""
        if "\0" in path:
            return None
        full = self.root / path.lstrip("/")
        if self.live:
            return full
        try:
            real = Path(os.path.realpath(full))
        except (OSError, ValueError):
            return None
        return full if real.is_relative_to(self.root) else None

    def _captured_text(self, name: str) -> str | None:
        try:
            with (self._captured / name).open("rb") as file:
                return file.read(LIMIT).decode("utf-8", "replace")
        except OSError:
            return None

    def _captured_word(self, name: str) -> str:
        return (self._captured_text(name) or "").strip()

    def _captured_lines(self, name: str) -> list[str]:
        return (self._captured_text(name) or "").splitlines()

    def _captured_environment(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self._captured_lines("environment.txt"))
        return {name: value for name, _, value in pairs if name}


def _natural(name: str) -> list[tuple[bool, int, str]]:
    return [
        (part.isdigit() and part.isascii(), int(part) if _digits(part) else 0, part)
        for part in re.split(r"([0-9]+)", name)
    ]


def _digits(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 20


def _status(text: str) -> int:
    return int(text) if re.fullmatch(r"-?[0-9]{1,4}", text) else 1
