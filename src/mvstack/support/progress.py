"""Progress that is always visible: the step, what it works on, the time so far and its log.

On a terminal a live display; in a pipe or a CI log plain lines (one when a step starts, one when
it ends, a heartbeat between with the last line of the log); or nothing.

    progress = Progress(total=7)
    with progress.step("install", "MPICH 4.0.2", log=path) as step:
        step.note("building [312 objects]")

Everything goes to standard error, so that standard output stays the command's own.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from mvstack.support.units import duration, one_line

Mode = Literal["auto", "live", "plain", "quiet"]
HEARTBEAT = 20.0
_REFRESH = 0.25  # seconds between two pictures of the live display
_TAIL = 4096
# how a step ends: its mark on a terminal, the mark's style, and the words before its time
_ENDS = {
    "done": ("✓", "green", "done in"),
    "failed": ("✗", "red", "failed after"),
    "interrupted": ("■", "yellow", "interrupted after"),
    "skipped": ("·", "dim", ""),
}


def last_line(log: Path | None) -> str:
    """The last line of a log that is not empty, cleaned; "" when there is none to read."""
    if log is None:
        return ""
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - _TAIL, 0))
            text = stream.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        return ""
    # EasyBuild names its own files in brackets while a command runs: no news to who waits
    lines = [line for line in map(one_line, text.splitlines()) if line and line[0] != "["]
    return lines[-1] if lines else ""


@dataclass(eq=False)
class Step:
    """One step that is going on, e.g. ``[3 of 7] install MPICH 4.0.2``."""

    title: str
    log: Path | None = None
    text: str = ""
    began: float = field(default_factory=time.monotonic)

    def note(self, text: str) -> None:
        """Say what the step does now (a phase, a count); shown with the next refresh."""
        self.text = one_line(text)

    @property
    def elapsed(self) -> str:
        """Time since the step began."""
        return duration(time.monotonic() - self.began)


class Progress:
    """Shows the steps of one command; ``total`` is how many outermost steps it will have.

    ``mode`` "auto" is live on a terminal and plain elsewhere. ``heartbeat`` is the longest silence
    of the plain mode, in seconds. ``stream`` is where it goes, standard error if None.
    """

    def __init__(
        self,
        total: int = 0,
        *,
        mode: Mode = "auto",
        heartbeat: float = HEARTBEAT,
        stream: TextIO | None = None,
    ) -> None:
        self.total, self.number = total, 0
        self.heartbeat = heartbeat
        self.console = Console(file=stream or sys.stderr, highlight=False)
        usable = self.console.is_terminal and not self.console.is_dumb_terminal
        self.mode: Mode = mode if mode != "auto" else "live" if usable else "plain"
        self._steps: list[Step] = []
        self._lock = threading.RLock()
        self._spinner = Spinner("dots")

    @contextmanager
    def step(self, kind: str, what: str = "", *, log: Path | None = None) -> Iterator[Step]:
        """Show one step while the block runs; an exception is shown as its end and goes on.

        A step inside another is shown below it and does not count in "3 of 7".
        """
        with self._lock:
            outermost = not self._steps
            step = self._made(kind, what, log)
            self._steps.append(step)
        self._event("start", step)
        result = "failed"
        try:
            with self._watch() if outermost else nullcontext():
                yield step
            result = "done"
        except (KeyboardInterrupt, GeneratorExit):
            result = "interrupted"
            raise
        finally:
            with self._lock:
                self._steps.remove(step)
            self._event(result, step)

    def skip(self, kind: str, what: str = "", why: str = "") -> None:
        """Count and show a step that is skipped, with the reason."""
        with self._lock:
            step = self._made(kind, what)
        step.note(why)
        self._event("skipped", step)

    def _made(self, kind: str, what: str, log: Path | None = None) -> Step:
        """A step with its number, if it is an outermost one."""
        count = "  " * len(self._steps) + "·"
        if not self._steps:
            self.number += 1
            # A command may find more to do than it announced; "8 of 7" would be a lie.
            total = max(self.total, self.number)
            count = f"[{self.number} of {total}]" if self.total else ""
        return Step(" ".join(filter(None, (count, one_line(kind), one_line(what)))), log)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """Whatever shows that time goes by, for as long as the outermost step runs."""
        if self.mode != "live":
            with _ticking(self.heartbeat, self._beat):
                yield
            return
        # Not Live's own refresh: its thread may go on for a while after the block.
        live = Live(
            get_renderable=self._render, console=self.console, auto_refresh=False, transient=True
        )
        with live, _ticking(_REFRESH, live.refresh):
            live.refresh()
            yield

    def _beat(self) -> None:
        with self._lock:
            steps = self._steps[-1:]
        for step in steps:
            self._event("heartbeat", step)

    def _event(self, event: str, step: Step) -> None:
        """Print one event in the manner of the mode."""
        if self.mode == "live" and event in _ENDS:
            mark, style, _ = _ENDS[event]
            line = Text(f"{mark} ", style=style).append(_plain(event, step), style="default")
            self.console.print(line, soft_wrap=True)
        with self._lock:
            if self.mode == "plain":
                # Not through rich, which would wrap: a wrapped line cannot be grepped.
                try:
                    self.console.file.write(_plain(event, step) + "\n")
                    self.console.file.flush()
                except (OSError, ValueError):
                    self.mode = "quiet"  # whoever read the progress has gone; the work goes on

    def _render(self) -> Group:
        """The live display: each open step with its time, then the log and its last line."""
        with self._lock:
            steps = list(self._steps)
        rows: list[Spinner | Text] = []
        for step in steps:
            text = _clipped(f"{step.title}  {step.elapsed}", "bold")
            if step.text:
                text.append(f"  {step.text}", style="not bold dim")
            if step is steps[-1]:
                self._spinner.update(text=text)
                rows.append(self._spinner)
            else:
                rows.append(text)
        logs = [step.log for step in steps if step.log]
        if logs:
            rows.append(Text(f"  log {one_line(str(logs[-1]))}", style="dim", overflow="fold"))
            rows.append(_clipped(f"  {last_line(logs[-1])}", "dim"))
        return Group(*rows)


def _clipped(text: str, style: str) -> Text:
    return Text(text, style=style, overflow="ellipsis", no_wrap=True)


def _plain(event: str, step: Step) -> str:
    """One line of the plain mode."""
    log = f"log {one_line(str(step.log))}" if step.log else ""
    if event == "start":
        return "  ".join(filter(None, (f"{step.title} …", log)))
    if event == "heartbeat":
        said = last_line(step.log)
        if step.text and said.strip("=. ") in step.text:  # `== building...`, of which we count
            said = ""
        return "  |  ".join(filter(None, (f"{step.title}: {step.elapsed}", step.text, said)))
    if event == "skipped":
        return f"{step.title}: skipped" + (f" ({step.text})" if step.text else "")
    ended = f"{step.title}: {_ENDS[event][2]} {step.elapsed}"
    return f"{ended}  {log}" if log and event != "done" else ended


@contextmanager
def _ticking(interval: float, beat: Callable[[], None]) -> Iterator[None]:
    """Call ``beat`` every ``interval`` seconds from a thread that ends with the block."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(interval):
            try:
                beat()
            except (OSError, ValueError):
                return  # the terminal has gone; the work goes on

    thread = threading.Thread(target=run, name="progress-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
