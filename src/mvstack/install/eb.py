"""Run EasyBuild for one easyconfig and follow what it does."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from mvstack.easyconfigs import FOLDER
from mvstack.errors import BuildFailed, Missing, Problem
from mvstack.install.lock import MARK

STEP = re.compile(r"^== ([a-z][^.\[]*?)\.\.\.\s*$")
TICK = 2.0  # seconds between looks at what has been compiled


@dataclass(frozen=True)
class EasyBuild:
    """EasyBuild as it is run for one tree."""

    root: Path
    tree: Path
    rendered: Path
    system_compiler: bool
    umask: str = "022"
    jobs: int | None = None
    extra: tuple[str, ...] = field(default_factory=tuple)

    @property
    def build(self) -> Path:
        """Where packages are compiled; emptied after each."""
        return self.tree / "build"

    def command(self, easyconfig: str, *more: str) -> list[str]:
        """The whole command line that installs ``easyconfig``."""
        robot = [self.rendered / "easyconfigs", FOLDER]
        if self.system_compiler:
            robot.insert(1, FOLDER / "system")
        options = [
            f"--installpath={self.tree}",
            "--subdir-modules=modules",
            "--suffix-modules-path=",
            "--subdir-software=software",
            f"--buildpath={self.build}",
            f"--tmpdir={self.tree}/logs/tmp",
            f"--repositorypath={self.tree}/ebfiles_repo",
            f"--sourcepath={self.root}/sources/easybuild",
            "--modules-tool=Lmod",
            "--module-syntax=Lua",
            f"--include-easyblocks={FOLDER}/easyblocks/*.py",
            f"--include-toolchains={FOLDER}/toolchains/*.py,{FOLDER}/toolchains/*/*.py",
            f"--include-module-naming-schemes={FOLDER}/naming/*.py",
            "--module-naming-scheme=MvapichStackMNS",
            f"--hooks={FOLDER}/hooks.py",
            f"--robot={':'.join(str(path) for path in robot)}",
            f"--umask={self.umask}",
            # an RPATH wrapper adds 0.3 s to each compile, and modules set LD_LIBRARY_PATH
            "--disable-rpath",
            "--allow-use-as-root-and-accept-consequences",
            "--disable-cleanup-tmpdir",
            # ours is the lock of the root; EasyBuild would stop at what a killed run left
            "--ignore-locks",
        ]
        if shutil.which("ccache"):
            options.append(f"--use-ccache={self.root}/ccache")
        if self.jobs:
            options.append(f"--parallel={self.jobs}")
        return [*_program(), *options, *self.extra, *more, easyconfig]

    def environment(self) -> dict[str, str]:
        """The environment of EasyBuild: ours, without modules and settings of the caller."""
        dropped = ("EASYBUILD_", "LMOD_", "MODULE", "_ModuleTable", "LOADEDMODULES", "_LMFILES_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        lmod = _lmod()
        return {
            **kept,
            MARK: str(self.tree),
            "LMOD_CMD": lmod,
            # last: EasyBuild finds its own easyconfigs beside `eb`, and builds the system's python
            "PATH": f"{Path(lmod).parent}:{kept.get('PATH', '')}:{Path(sys.executable).parent}",
            "XDG_CONFIG_HOME": str(self.tree / "logs" / "no-config"),
        }


@dataclass
class Built:
    """How one run of EasyBuild went: its steps with their seconds, and the log."""

    seconds: float
    steps: dict[str, float]
    log: Path


def run(
    easybuild: EasyBuild,
    easyconfig: str,
    log: Path,
    note: Callable[[str], None],
    *more: str,
) -> Built:
    """Install ``easyconfig``; ``note`` is told of each step.

    Raises BuildFailed with EasyBuild's own last words when it fails. Whatever ends this function
    ends EasyBuild and all its children with it.
    """
    command = easybuild.command(easyconfig, *more)
    (easybuild.tree / "logs" / "tmp").mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    steps: dict[str, float] = {}
    with log.open("w", buffering=1) as stream:  # a line at a time, so that it can be followed
        stream.write(shlex.join(command) + "\n")
        stream.flush()
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=easybuild.environment(),
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            _follow(process, easybuild.build, stream.write, note, steps)
            status = process.wait()
        finally:
            _end(process)
    seconds = time.monotonic() - began
    if status:
        raise _failure(easyconfig, status, log)
    shutil.rmtree(easybuild.build, ignore_errors=True)
    return Built(seconds, {name: round(value, 1) for name, value in steps.items()}, log)


def _follow(
    process: subprocess.Popen[bytes],
    build: Path,
    write: Callable[[str], object],
    note: Callable[[str], None],
    steps: dict[str, float],
) -> None:
    assert process.stdout is not None
    step, since = "starting", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        pending = b""
        while True:
            if not selector.select(TICK):
                if process.poll() is not None:
                    break  # it ended, and something that it started holds its output open
                note(f"{step}, {_objects(build)} objects" if step == "building" else step)
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace")
                write(text + "\n")
                found = STEP.match(text)
                if found:
                    now = time.monotonic()
                    steps[step] = steps.get(step, 0.0) + now - since
                    step, since = found.group(1), now
                    note(step)
        write(pending.decode("utf-8", "replace"))
    steps[step] = steps.get(step, 0.0) + time.monotonic() - since


def _objects(folder: Path) -> int:
    return sum(name.endswith(".o") for _, _, names in os.walk(folder) for name in names)


def _failure(easyconfig: str, status: int, log: Path) -> BuildFailed:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("ERROR", "== FAILED", "** "))] or lines[-3:]
    return BuildFailed(
        Problem(
            f"EasyBuild could not install {easyconfig} (status {status})",
            str(log),
            found=" | ".join(dict.fromkeys(said[-4:]))[:1500],
            todo="read the log named above; the same command goes on from here once it is mended",
        ),
        outcome="What was installed before stays; no module of the failed package can be loaded.",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole session of EasyBuild, make and compilers included, and wait for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _die_with_parent() -> None:
    """Ask the kernel to end EasyBuild when mvstack itself is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _program() -> list[str]:
    return [sys.executable, "-P", "-m", "easybuild.main"]


def _lmod() -> str:
    """Lmod's command. Raises Missing where there is none."""
    places = (os.environ.get("LMOD_CMD", ""), "/usr/share/lmod/lmod/libexec/lmod")
    for place in places:
        if place and Path(place).is_file():
            return place
    raise Missing(
        Problem(
            "Lmod is not installed, or LMOD_CMD does not name it",
            todo="apt-get install lmod, or load your site's Lmod first",
        )
    )
