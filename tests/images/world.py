"""Namespaces of their own (network, mounts, processes) with only the loopback up.

Whatever is started in a world, and whatever that starts, ends with it: the world's first process is
the init of its process namespace, and the kernel kills all others when it ends. It ends too when
the process that made the world dies, in whatever way, since it waits for the end of its input.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

LOOPBACK = "127.0.0.1"
_CLONE_NEWNET = 0x40000000
_INIT = """
ip link set lo up
# an address that is not 127.0.0.1: without one Slurm resolves no name, its own neither
ip addr add 192.0.2.1/32 dev lo
[ -z "$1" ] || mount --bind "$1" /etc/hosts
echo ready
read -r _
"""


class World:
    """Use as a context manager. ``names`` are host names that mean the loopback in there."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = names
        self._files = contextlib.ExitStack()
        self._unshare: subprocess.Popen[str] | None = None
        self.init = 0  # the init's number, as seen from outside

    def __enter__(self) -> World:
        hosts = ""
        if self.names:
            file = self._files.enter_context(tempfile.NamedTemporaryFile("w", prefix="hosts-"))
            file.write(f"{LOOPBACK} localhost {' '.join(self.names)}\n")
            file.flush()
            Path(file.name).chmod(0o644)
            hosts = file.name
        options = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._unshare = subprocess.Popen(
            ["unshare", *options, "bash", "-euc", _INIT, "world", hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._unshare.stdout is not None
        if self._unshare.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError("the world's namespaces could not be made")
        (self.init,) = children(self._unshare.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything in this world, and wait until it is gone."""
        if self._unshare:
            net = self.network() if self.init else ""
            self._unshare.kill()  # --kill-child: its child, the init, is killed with it
            self._unshare.wait()
            for pipe in (self._unshare.stdin, self._unshare.stdout):
                if pipe:
                    pipe.close()
            while net and processes(net):  # the kernel has killed them and is taking them away
                time.sleep(0.01)
            self._unshare, self.init = None, 0
        self._files.close()

    def network(self) -> str:
        """The name of this world's network namespace, as ``/proc/*/ns/net`` gives it."""
        return str(Path(f"/proc/{self.init}/ns/net").readlink())

    def popen(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        output: IO[bytes] | int = subprocess.DEVNULL,
        folder: Path = Path("/"),
    ) -> subprocess.Popen[bytes]:
        """Start ``command`` in this world with just that ``environment``, in a session of its own.

        The process returned is nsenter; the command is its only child. A signal to its process
        group reaches both, as a terminal's Ctrl-C would.
        """
        enter = ["nsenter", f"--target={self.init}", "--net", "--mount", "--pid"]
        return subprocess.Popen(
            [*enter, f"--wdns={folder}", "--", *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )

    def run(self, command: Sequence[str | Path], **environment: str) -> tuple[int, str]:
        """Run ``command`` in this world to its end: its exit code and what it printed."""
        with tempfile.TemporaryFile() as said:
            process = self.popen(command, {"PATH": os.environ["PATH"], **environment}, said)
            code = process.wait()
            said.seek(0)
            return code, said.read().decode("utf-8", "replace")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """In the block this thread, and threads that it starts, open sockets in this world."""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(namespace: int) -> None:
            if libc.setns(namespace, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = os.open(f"/proc/{self.init}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(there)
            try:
                yield
            finally:
                enter(own)
        finally:
            os.close(own)
            os.close(there)

    def free_port(self) -> int:
        """A TCP port of the loopback that nothing listens on now."""
        with self.inside(), socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return int(probe.getsockname()[1])


def children(pid: int) -> list[int]:
    """The processes that ``pid`` started and that it has not outlived."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def processes(namespace: str) -> list[int]:
    """All processes of this machine in the namespace called so, e.g. ``net:[4026532179]``."""
    kind = namespace.split(":")[0]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((folder / "ns" / kind).readlink()) == namespace:
                found.append(int(folder.name))
    return found


def networks(pids: Iterable[int]) -> set[str]:
    """The network namespaces of those of ``pids`` that have not ended meanwhile."""
    found = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):
            found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of :meth:`World.popen` with all of its group, and wait for it."""
    if process.poll() is None:  # else its number may be another's by now
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
