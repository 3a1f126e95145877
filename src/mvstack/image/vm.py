"""A virtual machine on this one, reached by ssh over loopback."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mvstack.image import tools
from mvstack.support import processes
from mvstack.support.errors import BuildFailed, Problem
from mvstack.support.processes import Done, run

#: Seconds until an emulated machine answers; a quiet one took 28, a busy one with two cores 120.
PATIENCE = 600
_SSH = (
    "-F/dev/null",
    "-oStrictHostKeyChecking=no",
    "-oUserKnownHostsFile=/dev/null",
    "-oLogLevel=ERROR",
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=15",
    "-oIdentitiesOnly=yes",
)


@cache
def accelerator() -> str:
    """``kvm`` where it works, else ``tcg``, which emulates and is several times slower."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    command = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-m", "16"]
    command += ["-display", "none", "-nodefaults", "-monitor", "stdio", "-S"]
    return "kvm" if run(command, data=b"quit\n", limit=10).ok else "tcg"


def processor() -> str:
    """qemu's -cpu: this machine's own, or all that emulation offers (x86-64-v3 among it)."""
    return "host" if accelerator() == "kvm" else "max"


def arguments(seed: Path, port: int | str) -> list[list[str]]:
    """What a machine gets beside disk, memory and processors; ssh comes over loopback alone."""
    return [
        ["-cpu", processor()],
        ["-netdev", f"user,id=user.0,hostfwd=tcp:127.0.0.1:{port}-:22"],
        ["-device", "virtio-net-pci,netdev=user.0,romfile="],
        ["-device", "virtio-rng-pci"],
        ["-cdrom", str(seed)],
        ["-vga", "none"],
    ]


def make_key(folder: Path) -> Path:
    """A key pair for one build or test; the private half's path."""
    key = folder / "key"
    if not key.with_suffix(".pub").is_file():  # which is written last
        key.unlink(missing_ok=True)
        tools.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "mvapich-stack", "-f", key],
            folder / "key.log",
            what="making a key",
        )
    return key


def make_seed(folder: Path, key: Path, instance: str, root: bool) -> Path:
    """An ISO image for cloud-init with the public half of ``key``, for root or the default user."""
    public = key.with_suffix(".pub").read_text().strip()
    user: dict[str, object] = {"ssh_authorized_keys": [public]}
    if root:
        user |= {
            "disable_root": False,
            "users": [{"name": "root", "ssh_authorized_keys": [public]}],
        }
    source = folder / "seed"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    (source / "meta-data").write_text(json.dumps({"instance-id": instance}) + "\n")
    (source / "user-data").write_text("#cloud-config\n" + json.dumps(user) + "\n")
    seed = folder / "seed.iso"
    command: list[str | Path] = ["xorriso", "-as", "mkisofs", "-quiet", "-V", "cidata", "-J", "-R"]
    tools.run([*command, "-o", seed, source], folder / "seed.log", what="making the seed")
    return seed


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass
class Machine:
    """A started machine: how to reach it, and what its console said."""

    port: int
    user: str
    key: Path
    console: Path
    process: subprocess.Popen[bytes]

    def ssh(self, *command: str) -> list[str]:
        """The command line that runs ``command`` there."""
        return ["ssh", *_SSH, f"-i{self.key}", f"-p{self.port}", f"{self.user}@127.0.0.1", *command]

    def run(self, command: str, limit: float = 600, data: bytes = b"") -> Done:
        """Run a line of shell there, with ``data`` as its standard input.

        Raises BuildFailed when it does not end within ``limit`` seconds.
        """
        done = run(self.ssh(command), data=data, limit=limit)
        if done.timed_out:
            raise BuildFailed(
                Problem(f"the machine did not answer within {limit:.0f} s", str(self.console))
            )
        return done

    def ssh_config(self, file: Path, sockets: Path, name: str = "image") -> Path:
        """A configuration file for ssh and what uses it (testinfra).

        ``sockets`` is a folder with a short path: a socket's own may have 107 characters.
        """
        lines = [f"Host {name}", "  HostName 127.0.0.1", f"  Port {self.port}"]
        lines += [f"  User {self.user}", f"  IdentityFile {self.key}", "  IdentitiesOnly yes"]
        lines += [
            "  StrictHostKeyChecking no",
            "  UserKnownHostsFile /dev/null",
            "  LogLevel ERROR",
        ]
        # one connection for all commands: a new one costs a second in an emulated machine
        lines += [
            "  ControlMaster auto",
            f"  ControlPath {sockets}/%C",
            "  ControlPersist 30",
        ]
        file.write_text("\n".join(lines) + "\n")
        return file


@dataclass(frozen=True)
class Guest:
    """What a machine is started with: processors, memory, cloud-init's seed, and who logs in."""

    user: str
    key: Path
    seed: Path
    cpus: int
    memory_mb: int


@contextlib.contextmanager
def started(
    disk: Path, folder: Path, guest: Guest, note: Callable[[str], None] = lambda _: None
) -> Iterator[Machine]:
    """Start a machine on a layer over ``disk``, which stays as it is; ended with the block.

    Raises BuildFailed with the console's last lines when it cannot be reached.
    """
    folder.mkdir(parents=True, exist_ok=True)
    layer, console = folder / "layer.qcow2", folder / "console.log"
    layer.unlink(missing_ok=True)
    command: list[str | Path] = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2"]
    tools.run([*command, "-b", disk.resolve(), layer], folder / "vm.log", what="making the layer")
    port = free_port()
    words = [
        "qemu-system-x86_64",
        *(
            "-machine",
            f"pc,accel={accelerator()}",
            "-smp",
            str(guest.cpus),
            "-m",
            str(guest.memory_mb),
        ),
        *("-drive", f"file={layer},if=virtio,format=qcow2,cache=unsafe,discard=unmap"),
        *(word for pair in arguments(guest.seed, port) for word in pair),
        *("-display", "none", "-monitor", "none", "-serial", f"file:{console}"),
    ]
    try:
        with (
            (folder / "vm.log").open("ab") as log,
            processes.started(words, os.environ, log, grace=20) as process,
        ):
            machine = Machine(port, guest.user, guest.key, console, process)
            _reach(machine, note)
            yield machine
    finally:
        layer.unlink(missing_ok=True)


def _reach(machine: Machine, note: Callable[[str], None]) -> None:
    begin = time.monotonic()
    said = ""
    while time.monotonic() - begin < PATIENCE:
        if machine.process.poll() is not None:
            said = f"qemu ended with status {machine.process.returncode}"
            break
        done = run(machine.ssh("true"), limit=60)
        if done.ok:
            return
        said = done.errors.strip()
        note(f"starting, {time.monotonic() - begin:.0f} s")
        time.sleep(2)
    tail = machine.console.read_text(errors="replace")[-1500:] if machine.console.exists() else ""
    raise BuildFailed(
        Problem(
            f"the machine could not be reached by ssh within {PATIENCE} s",
            str(machine.console),
            found=f"{said}; console: {tail}",
            todo="read its console; a first start without a seed lets nobody in",
        )
    )
