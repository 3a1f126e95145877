"""Run a program, or follow it line by line; nothing that it started outlives it, or us."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Reads a word that we write when all is done; when we die without it, ends what we started.
_WATCH = 'read -r _ || { kill "$1"; sleep "$2"; kill -s KILL -- "-$1"; } 2>/dev/null'
TICK = 2.0  # seconds between looks at what goes on while the program says nothing
DYING = 4.0  # seconds in which the kernel must have ended what was killed
GRACE = 4.0  # seconds to clean up before a kill: of ReFrame its jobs, of a launcher its ranks


class TimedOut(Exception):
    """The program was silent for longer than it may; it was ended."""


@dataclass(frozen=True)
class Limits:
    """How long a program may take, in seconds.

    ``silence`` is the longest time without a line. ``grace`` is what it gets to clean up between
    SIGTERM and SIGKILL when it must end; 0 kills it at once.
    """

    silence: float | None = None
    grace: float = 0.0


@dataclass(frozen=True)
class Done:
    """How a program ended and what it printed; a negative status is a signal's number."""

    status: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether the program ended by itself and with success."""
        return self.status == 0 and not self.timed_out

    @property
    def text(self) -> str:
        """What it printed on standard output."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        """What it printed on standard error."""
        return self.stderr.decode("utf-8", "replace")

    @property
    def said(self) -> str:
        """What it printed on both."""
        return self.text + self.errors


def english(**more: str) -> dict[str, str]:
    """Our environment, with messages in English, and ``more``."""
    return {**os.environ, "LC_ALL": "C.UTF-8", **more}


@contextlib.contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Have an environment variable while the block runs, here and in what is started."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    data: bytes = b"",
    limit: float | None = None,
    most: int = -1,
) -> Done:
    """Run ``command`` to its end with ``data`` as its input, and keep what it prints.

    After ``limit`` seconds it gets a SIGTERM, so that a launcher can end its ranks on other nodes,
    and is killed after GRACE more, with all that it started. At most ``most`` bytes are kept of
    each stream. Raises OSError when it cannot be started.
    """
    with contextlib.ExitStack() as stack:
        # Files, not pipes: a grandchild that keeps a pipe open would make us wait for it.
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE if data else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=env if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.communicate(data or None, limit)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            if process.poll() is None:
                end(process, GRACE)
        out.seek(0)
        err.seek(0)
        return Done(process.returncode, out.read(most), err.read(most), timed_out)


def follow(
    command: Sequence[str],
    env: Mapping[str, str],
    *,
    line: Callable[[str], object],
    tick: Callable[[], object] = lambda: None,
    cwd: Path | None = None,
    limits: Limits = Limits(),
) -> int:
    """Run ``command`` to its end; its exit status, negative for a signal.

    ``line`` gets each line of its output, both streams in one, without the line's end; a carriage
    return ends a line too. ``tick`` is called when there was none for some seconds. Raises
    TimedOut. Whatever ends this function, an exception of ``line`` included, ends the program and
    all that it started; so does our own death by kill -9.
    """
    with started(command, env, subprocess.PIPE, cwd=cwd, grace=limits.grace) as process:
        _lines(process, line, tick, limits)
        return process.wait()


@contextlib.contextmanager
def started(
    command: Sequence[str],
    env: Mapping[str, str],
    output: IO[bytes] | int,
    *,
    cwd: Path | None = None,
    grace: float = 0.0,
    pass_fds: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Have ``command`` run while the block does, both its streams going to ``output``.

    What ends the block, or us, ends the program and all that it started. It gets a SIGTERM and
    ``grace`` seconds to clean up first; with no grace it is killed at once.
    """
    process = subprocess.Popen(
        list(command),
        stdout=output,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=dict(env),
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,  # a Ctrl-C at the terminal reaches it through us alone
    )
    try:
        with _watched(process.pid, grace):
            yield process
    finally:
        end(process, grace)


def end(process: subprocess.Popen[bytes], grace: float = 0.0) -> None:
    """End a program and all that it started, make and compilers included, and wait for it.

    Jobs that it put into sessions of their own (ReFrame does) are found as its descendants.
    """
    family = []
    if process.poll() is None:
        import psutil  # here, for it takes a tenth of a second of every command's start

        def below(pid: int) -> list[psutil.Process]:
            with contextlib.suppress(psutil.Error):
                return psutil.Process(pid).children(recursive=True)
            return []

        family = below(process.pid)
        if grace:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
            family += below(process.pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + DYING
    while family and time.monotonic() < deadline:
        for one in list(family):
            # a killed parent hands its children on: whoever is new below the living goes too
            family += [new for new in below(one.pid) if new not in family]
            with contextlib.suppress(psutil.Error):
                one.kill()
        family = psutil.wait_procs(family, 0.05)[1]


def end_marked(name: str, folder: Path) -> int:
    """Kill the processes, not us, with ``name=<folder>`` in their environment; their number.

    Those of a container, to which another folder has this name, go on.
    """
    import psutil  # here, for it takes a tenth of a second of every command's start

    found = 0
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            marked = one.pid != os.getpid() and one.environ().get(name) == str(folder)
            if marked and folder.samefile(f"/proc/{one.pid}/root{folder}"):
                one.kill()
                found += 1
    return found


def _lines(
    process: subprocess.Popen[bytes],
    line: Callable[[str], object],
    tick: Callable[[], object],
    limits: Limits,
) -> None:
    assert process.stdout is not None
    with process.stdout, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        pending, heard = b"", time.monotonic()
        while True:
            if not selector.select(TICK):
                if process.poll() is not None:
                    break  # it ended, and something that it started holds its output open
                if limits.silence and time.monotonic() - heard > limits.silence:
                    raise TimedOut
                tick()
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            heard = time.monotonic()
            *whole, pending = (pending + chunk).replace(b"\r", b"\n").split(b"\n")
            for text in whole:
                line(text.decode("utf-8", "replace"))
        if pending:
            line(pending.decode("utf-8", "replace"))


@contextlib.contextmanager
def _watched(group: int, grace: float) -> Iterator[None]:
    """Have another process end the process group ``group`` when we die in this block."""
    with subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "watch", str(group), str(grace)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as watch:
        try:
            yield
        finally:
            watch.communicate(b"done\n")
