"""One real build by Packer in a world: what it is given, and what came out.

The build runs in a process of its own (build.py) as `mvstack image build` runs it, through
mvstack.image.packer, with the repository's templates and its provisioning (kits.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import kits
from .instance import USER, Instance
from .world import LOOPBACK, World, children, end

TOP = Path(__file__).resolve().parents[2]
IMAGE, RELEASE, VERSION = "test-hpc", "2026.11", "2026.11.0"
NAME = f"mvapich-stack-{IMAGE}-{VERSION}"
BUILD = "20261121T211500Z-3fa9c1"
SOURCES = {"aws": "amazon-ebs.image", "azure": "azure-arm.image"}


@dataclass(frozen=True)
class Outcome:
    """How a build ended: exit code, all that was printed, Packer's own debug log."""

    code: int
    output: str
    debug: str

    def connected(self) -> set[str]:
        """The addresses that Packer connected to by SSH."""
        words = "Attempting SSH connection to "
        lines = [line for line in self.debug.splitlines() if words in line]
        return {line.split(words)[1].rstrip(".").split("...")[0] for line in lines}


class Flow:
    """A build that runs. ``steps`` are files for the kit; see :func:`kits.make`."""

    def __init__(
        self,
        world: World,
        instance: Instance,
        key: Path,
        folder: Path,
        cloud: str,
        variables: dict[str, Any],
        environment: dict[str, str],
        steps: dict[str, str] | None = None,
    ) -> None:
        self.world, self.instance, self.folder = world, instance, folder
        folder.mkdir(parents=True)
        kit, digest = kits.make(folder, cloud, steps or {})
        given = {
            "image": IMAGE,
            "release": RELEASE,
            "version": VERSION,
            "build_id": BUILD,
            "commit": "0" * 40,
            "user": USER,
            "disk_gb": 10,
            "kit": str(kit),
            "kit_sha256": digest,
            "manifest": str(folder / "packer-manifest.json"),
            # always: nobody may dial an address that an emulator made up
            "ssh_host": LOOPBACK,
            "ssh_port": instance.port,
            "ssh_private_key_file": str(key),
            **variables,
        }
        request = {"folder": str(folder), "source": SOURCES[cloud], "variables": given}
        (folder / "request.json").write_text(json.dumps(request))
        self._said = (folder / "said").open("w+b")
        inside = {
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "HOME": str(folder),
            "PYTHONPATH": f"{TOP / 'src'}",
            "PACKER_LOG": "1",
            "PACKER_LOG_PATH": str(folder / "debug.log"),
            **environment,
        }
        command = [sys.executable, Path(__file__).parent / "build.py", folder / "request.json"]
        self._process = world.popen(command, inside, self._said, folder)

    def wait(self) -> Outcome:
        """Wait for its end."""
        code = self._process.wait()
        self._said.close()
        debug = self.folder / "debug.log"
        return Outcome(
            code,
            (self.folder / "said").read_text(errors="replace"),
            debug.read_text(errors="replace") if debug.exists() else "",
        )

    def provisioning(self) -> None:
        """Wait until the kit WAITING runs in the instance; RuntimeError when the build ends."""
        mark = self.instance.root / "run/provisioning"
        while not mark.exists():
            if self._process.poll() is not None:
                raise RuntimeError(self.wait().output)
            time.sleep(0.05)

    def packer(self) -> list[int]:
        """The processes of Packer itself, outermost first, numbered as seen from here."""
        found, seen = [], [self._process.pid]
        while seen:
            pid = seen.pop(0)
            seen += children(pid)
            with contextlib.suppress(FileNotFoundError):  # it ended meanwhile
                if Path(f"/proc/{pid}/comm").read_text().strip() == "packer":
                    found.append(pid)
        return found

    def interrupt(self) -> None:
        """Ctrl-C: the process that runs the build receives SIGINT, not Packer."""
        (build,) = children(self._process.pid)
        os.kill(build, signal.SIGINT)

    def kill_builder(self) -> None:
        """kill -9 of the process that runs Packer, not of Packer."""
        (build,) = children(self._process.pid)
        os.kill(build, signal.SIGKILL)

    def kill_all(self) -> None:
        """kill -9 of Packer with its plugins and of what runs it, as when the machine goes down."""
        if self._process.poll() is not None:
            return  # ended: its number may be another's by now
        packers = self.packer()
        for word in (signal.SIGSTOP, signal.SIGKILL):  # none may act on the death of another
            for pid in packers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, word)
        end(self._process)
