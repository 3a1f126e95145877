"""The only way that discovery sees a machine: files, folders, links, tools and variables.

They come from this machine, from a folder that holds another's files (no tool is run then), or from
a capture. What was asked is kept as a capture. Every reader returns an empty value or None for what
is absent; none of them raises for the state of the machine.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import archspec.cpu

from mvstack.discover.capture import TIMED_OUT, Capture
from mvstack.support.processes import run

T = TypeVar("T")

LIMIT = 1 << 20
"""Bytes read of one file: /proc/cpuinfo of 512 threads is about 0.8 MB."""

TIMEOUT = 5.0
"""Seconds a tool may take: a controller that is down makes some wait for minutes."""


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


class _Files:
    """A machine's files below a folder; its tools and variables too where that is ``/``."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.live = self.tools_known = self.root == Path("/")

    def text(self, path: str) -> str:
        with self._inside(path).open("rb") as file:
            return file.read(LIMIT).decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        return [entry.name for entry in self._inside(path).iterdir()]

    def link(self, path: str) -> str:
        return str((self._inside(str(Path(path).parent)) / Path(path).name).readlink())

    def exists(self, path: str) -> bool:
        return self._inside(path).exists()

    def environment(self, name: str) -> str:
        return os.environ.get(name, "") if self.live else ""

    def which(self, tool: str) -> str:
        return (shutil.which(tool) or "") if self.live else ""

    def ask(self, words: tuple[str, ...]) -> Output | None:
        path = self.which(words[0])
        return ask([path, *words[1:]]) if path else None

    def target(self) -> str:
        return archspec.cpu.host().name if self.live else ""

    def _inside(self, path: str) -> Path:
        """``path`` below the root. Raises FileNotFoundError when a link leads out of the root."""
        full = self.root / path.lstrip("/")
        if self.live or Path(os.path.realpath(full)).is_relative_to(self.root):
            return full
        raise FileNotFoundError(path)


class _Kept:
    """A machine as a capture has it."""

    live = False

    def __init__(self, capture: Capture) -> None:
        self.kept = capture
        self.tools_known = bool(capture.tools or capture.outputs)
        self._below: dict[str, set[str]] = {}
        for path in (*capture.files, *capture.links, *capture.there):
            parts = path.split("/")
            for end in range(1, len(parts)):
                self._below.setdefault("/".join(parts[:end]) or "/", set()).add(parts[end])

    def text(self, path: str) -> str:
        self._refuse(path)
        if path not in self.kept.files:
            raise FileNotFoundError(path)
        return self.kept.files[path]

    def names(self, path: str) -> list[str]:
        self._refuse(path)
        if path not in self._below and path not in self.kept.there:
            raise FileNotFoundError(path)
        return sorted(self._below.get(path, ()))

    def link(self, path: str) -> str:
        self._refuse(path)
        return self.kept.links.get(path, "")

    def exists(self, path: str) -> bool:
        kept = self.kept
        return any(path in one for one in (self._below, kept.files, kept.links, kept.there))

    def environment(self, name: str) -> str:
        return self.kept.environment.get(name, "")

    def which(self, tool: str) -> str:
        return self.kept.tools.get(tool, "")

    def ask(self, words: tuple[str, ...]) -> Output | None:
        command = shlex.join(words)
        if command not in self.kept.outputs:
            return None
        failed = self.kept.failed.get(command, 0)
        if failed == TIMED_OUT:
            return Output(self.kept.outputs[command], -9, True)
        return Output(self.kept.outputs[command], int(failed))

    def target(self) -> str:
        return self.kept.target

    def _refuse(self, path: str) -> None:
        if path in self.kept.denied:
            raise PermissionError(path)


class View:
    """A machine; paths are given as on that machine, with a leading slash."""

    def __init__(self, machine: Path | Capture) -> None:
        self.source = _Kept(machine) if isinstance(machine, Capture) else _Files(machine)
        self.seen = Capture()
        if isinstance(machine, Capture):
            self.seen.denied |= machine.denied
        self._asked: dict[tuple[str, ...], Output | None] = {}

    @property
    def tools_known(self) -> bool:
        """Whether it is known which tools this machine has (else their absence says nothing)."""
        return self.source.tools_known

    def text(self, path: str) -> str | None:
        """The text of a file; None when it cannot be read."""
        found = self._read(self.source.text, path)
        if found is not None:
            self.seen.files[path] = found
        return found

    def word(self, path: str) -> str:
        """A one-line file without the white space around it; "" when it cannot be read."""
        return (self.text(path) or "").strip()

    def names(self, path: str) -> list[str]:
        """The names in a folder, in natural order (mlx5_2 before mlx5_10); [] when absent."""
        found = self._read(self.source.names, path)
        if found is None:
            return []
        # a name that cannot be printed is no device's; it would not survive JSON either
        names = sorted((name for name in found if name.isprintable()), key=_natural)
        self.seen.there |= {path, *(f"{path.rstrip('/')}/{name}" for name in names)}
        return names

    def link(self, path: str) -> str:
        """The last part of a link's target, e.g. a driver's name; "" when there is none."""
        target = self._read(self.source.link, path)
        if not target or not target.isprintable():
            return ""
        self.seen.links[path] = Path(target).name
        return Path(target).name

    def _read(self, read: Callable[[str], T], path: str) -> T | None:
        try:
            return read(path)
        except PermissionError:
            self.seen.denied.add(path)
        except (OSError, ValueError):
            pass
        return None

    def exists(self, path: str) -> bool:
        """Whether there is a file, folder or device of this name."""
        try:
            there = self.source.exists(path)
        except (OSError, ValueError):
            return False
        self.seen.there |= {path} if there else set()
        return there

    def environment(self, name: str) -> str:
        """An environment variable; "" when it is not set."""
        value = self.source.environment(name)
        if not value or not value.isprintable():
            return ""
        self.seen.environment[name] = value
        return value

    def target(self) -> str:
        """archspec's name of the processor; "" when this is not the machine itself."""
        self.seen.target = self.source.target()
        return self.seen.target

    def which(self, tool: str) -> str:
        """The path of a tool, or ""."""
        path = self.source.which(tool)
        if not path.startswith("/") or not path.isprintable():
            return ""
        self.seen.tools[tool] = path
        return path

    def ask(self, *words: str) -> Output | None:
        """What a tool printed (both streams); None when this machine has no such tool."""
        if words not in self._asked:
            self._asked[words] = self.source.ask(words)
        output = self._asked[words]
        if output is not None:
            command = shlex.join(words)
            self.seen.outputs[command] = output.text
            if not output.ok:
                self.seen.failed[command] = TIMED_OUT if output.timed_out else output.status
        return output

    def say(self, *words: str) -> str:
        """The text of a tool that succeeded, otherwise ""."""
        output = self.ask(*words)
        return output.text if output is not None and output.ok else ""

    def ask_together(self, commands: Iterable[tuple[str, ...]]) -> None:
        """Run these now, side by side, so that one slow tool does not add to another."""
        if self.source.live:
            with ThreadPoolExecutor(max_workers=8) as pool:
                list(pool.map(lambda command: self.ask(*command), commands))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.split(r"([0-9]{1,19})", name)
    # isdecimal: "²" is a digit that int() refuses
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
