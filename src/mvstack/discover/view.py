"""The only way that discovery sees a machine: files, folders, links, tools and variables.

They come from this machine, from a folder that holds another's files (no tool is run then), or from
a capture. What was asked is kept as a capture. Every reader returns an empty value or None for what
is absent; none of them raises for the state of the machine.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import archspec.cpu

from mvstack.discover.capture import TIMED_OUT, Capture
from mvstack.support.processes import Done, english, run

T = TypeVar("T")

LIMIT = 1 << 20
"""Bytes read of one file: /proc/cpuinfo of 512 threads is about 0.8 MB."""

TIMEOUT = 5.0
"""Seconds a tool may take: a controller that is down makes some wait for minutes."""

PRELOAD = re.compile(rb"^ERROR: ld\.so: .*\n?", re.M)
"""What every program prints where LD_PRELOAD names a library that is not there."""


def ask(command: list[str], timeout: float = TIMEOUT) -> Done | None:
    """Run ``command``; None when it cannot be started (not executable, wrong architecture)."""
    try:
        done = run(command, env=english(), limit=timeout, most=LIMIT)
        return replace(done, stderr=PRELOAD.sub(b"", done.stderr))
    except (OSError, ValueError):
        return None


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

    def ask(self, command: str) -> Done | None:
        tool, *words = command.split()
        path = self.which(tool)
        return ask([path, *words]) if path else None

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
        self.tree: dict[str, set[str]] = {}  # each path that is there, and the names below it
        for path in (*capture.files, *capture.links, *capture.there):
            self.tree.setdefault(path, set())
            parts = path.split("/")
            for end in range(1, len(parts)):
                self.tree.setdefault("/".join(parts[:end]) or "/", set()).add(parts[end])

    def text(self, path: str) -> str:
        return self.kept.files[path]

    def names(self, path: str) -> list[str]:
        return list(self.tree[path])

    def link(self, path: str) -> str:
        return self.kept.links[path]

    def exists(self, path: str) -> bool:
        return path in self.tree

    def environment(self, name: str) -> str:
        return self.kept.environment.get(name, "")

    def which(self, tool: str) -> str:
        return self.kept.tools.get(tool, "")

    def ask(self, command: str) -> Done | None:
        if command not in self.kept.outputs:
            return None
        failed = self.kept.failed.get(command, 0)
        timed_out = failed == TIMED_OUT
        status = -9 if timed_out else int(failed)
        return Done(status, self.kept.outputs[command].encode(), b"", timed_out)

    def target(self) -> str:
        return self.kept.target


class View:
    """A machine; paths are given as on that machine, with a leading slash."""

    def __init__(self, machine: Path | Capture) -> None:
        self.source = _Kept(machine) if isinstance(machine, Capture) else _Files(machine)
        # whether it is known which tools there are; else that one is absent says nothing
        self.tools_known = self.source.tools_known
        self.seen = Capture()
        if isinstance(machine, Capture):
            self.seen.denied |= machine.denied
        self._asked: dict[str, Done | None] = {}

    def text(self, path: str) -> str | None:
        """The text of a file; None when it cannot be read."""
        found = self._read(self.source.text, path)
        if found is not None:
            self.seen.files[path] = found
        return found

    def word(self, path: str) -> str:
        """A one-line file without the white space around it; "" when it cannot be read."""
        return (self.text(path) or "").strip()

    def search(self, path: str, pattern: str) -> re.Match[str] | None:
        """The first place in a file that matches, where ^ and $ are the ends of a line."""
        return re.search(pattern, self.text(path) or "", re.M)

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
        target = self._read(self.source.link, path) or ""
        return self._keep(self.seen.links, path, Path(target).name)

    def _read(self, read: Callable[[str], T], path: str) -> T | None:
        if path in self.seen.denied:
            return None
        try:
            return read(path)
        except PermissionError:
            self.seen.denied.add(path)
        except (OSError, ValueError, LookupError):
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
        return self._keep(self.seen.environment, name, self.source.environment(name))

    def target(self) -> str:
        """archspec's name of the processor; "" when this is not the machine itself."""
        self.seen.target = self.source.target()
        return self.seen.target

    def which(self, tool: str) -> str:
        """The path of a tool, or ""."""
        path = self.source.which(tool)
        return self._keep(self.seen.tools, tool, path if path.startswith("/") else "")

    @staticmethod
    def _keep(seen: dict[str, str], name: str, value: str) -> str:
        """``value``, remembered; "" for one that cannot be printed."""
        if not value or not value.isprintable():
            return ""
        seen[name] = value
        return value

    def ask(self, command: str) -> Done | None:
        """How a command ended and what it printed; None when this machine has no such tool."""
        if command not in self._asked:
            self._asked[command] = self.source.ask(command)
        done = self._asked[command]
        if done is not None:
            self.seen.outputs[command] = done.said
            if not done.ok:
                self.seen.failed[command] = TIMED_OUT if done.timed_out else done.status
        return done

    def say(self, command: str) -> str:
        """What a command printed that succeeded, otherwise ""."""
        done = self.ask(command)
        return done.said if done is not None and done.ok else ""

    def ask_together(self, commands: Iterable[str]) -> None:
        """Run these now, side by side, so that one slow tool does not add to another."""
        if self.source.live:
            with ThreadPoolExecutor(max_workers=8) as pool:
                list(pool.map(self.ask, commands))


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.split(r"([0-9]{1,19})", name)
    # isdecimal: "²" is a digit that int() refuses
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
