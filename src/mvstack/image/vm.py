"""A virtual machine on this one, reached by ssh over loopback."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mvstack.image import tools
from mvstack.support import processes
from mvstack.support.errors import BuildFailed
from mvstack.support.processes import Done, run

#: Seconds until an emulated machine answers; a quiet one took 28, a busy one with two cores 120.
PATIENCE = 600
_BOOT = "cat /proc/sys/kernel/random/boot_id"


@cache
def accelerator() -> str:
    """``kvm`` where it works, else ``tcg``, which emulates and is several times slower."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    # KVM without the processor's help (PVM) does start a guest, which then gets nowhere
    if not flags & {"vmx", "svm"} or not os.access("/dev/kvm", os.R_OK | os.W_OK):
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
    return seed_of(
        folder,
        {
            "meta-data": json.dumps({"instance-id": instance}) + "\n",
            "user-data": "#cloud-config\n" + json.dumps(user) + "\n",
        },
    )


def seed_of(folder: Path, files: Mapping[str, str]) -> Path:
    """An ISO image for cloud-init with ``files``: meta-data, user-data, network-config."""
    source = folder / "seed"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name, text in files.items():
        (source / name).write_text(text)
    seed = folder / "seed.iso"
    command: list[str | Path] = ["xorriso", "-as", "mkisofs", "-quiet", "-V", "cidata", "-J", "-R"]
    tools.run([*command, "-o", seed, source], folder / "seed.log", what="making the seed")
    return seed


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@dataclass(frozen=True)
class Machine:
    """A started machine: ``name`` is what ssh knows it by, with ``config`` where one is given.

    ``process`` is its qemu and ``console`` what it said, where it was started here.
    """

    name: str
    config: Path | None = None
    console: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def ssh(self, *command: str) -> list[str]:
        """The command line that runs ``command`` there, over a connection of its own."""
        options = ["-oBatchMode=yes", "-oConnectTimeout=10", "-oControlPath=none"]
        given = ["-F", str(self.config)] if self.config else []
        return ["ssh", *given, *options, "-oServerAliveInterval=15", self.name, *command]

    def run(self, command: str, limit: float = 600, data: bytes = b"") -> Done:
        """Run a line of shell there, with ``data`` as its standard input.

        Raises BuildFailed when it does not end within ``limit`` seconds.
        """
        done = run(self.ssh(command), data=data, limit=limit)
        if done.timed_out:
            raise BuildFailed(f"the machine did not answer within {limit:.0f} s", self.where)
        return done

    def reboot(self, note: Callable[[str], None]) -> None:
        """Start it again, and wait for it. Raises BuildFailed when it does not come back."""
        before = self.run(_BOOT).text
        self.run("sudo systemctl reboot", limit=60)  # which may cut the connection off
        self.reach(note, before)

    def reach(self, note: Callable[[str], None], before: str = "") -> None:
        """Wait until ssh gets in, after another start than ``before``. Raises BuildFailed."""
        begin = time.monotonic()
        said = ""
        while time.monotonic() - begin < PATIENCE:
            if self.process and self.process.poll() is not None:
                said = f"qemu ended with status {self.process.returncode}"
                break
            done = run(self.ssh(_BOOT), limit=60)
            if done.ok and done.text != before:
                return
            said = done.errors.strip()
            note(f"starting, {time.monotonic() - begin:.0f} s")
            time.sleep(2)
        there = self.console is not None and self.console.exists()
        tail = self.console.read_text(errors="replace")[-1500:] if there and self.console else ""
        raise BuildFailed(
            f"the machine could not be reached by ssh within {PATIENCE} s"
            + (" of being started again" if before else ""),
            self.where,
            found=f"{said}; console: {tail or 'not to be had'}",
            todo="read its console; a first start without a key lets nobody in",
        )

    @property
    def where(self) -> str:
        """What an error names."""
        return str(self.console or self.name)


@contextlib.contextmanager
def reached_by(
    file: Path, at: Mapping[str, tuple[str, int]], user: str, key: Path
) -> Iterator[Path]:
    """The file for ssh and what uses it (testinfra), for as long as the block lasts.

    ``at`` is where each machine is, address and port, by its name in the file.
    """
    lines = []
    for name, (address, port) in at.items():
        lines += [f"Host {name}", f"  HostName {address}", f"  Port {port}"]
    lines += ["Host *", f"  User {user}", f"  IdentityFile {key}", "  IdentitiesOnly yes"]
    lines += ["  StrictHostKeyChecking no", "  UserKnownHostsFile /dev/null", "  LogLevel ERROR"]
    # a socket's path may have 107 characters
    with tempfile.TemporaryDirectory(prefix="mvs-") as sockets:
        # one connection for all commands: a new one costs a second in an emulated machine
        lines += ["  ControlMaster auto", f"  ControlPath {sockets}/%C", "  ControlPersist 30"]
        file.write_text("\n".join(lines) + "\n")
        yield file


@dataclass(frozen=True)
class Guest:
    """What a machine is started with: processors, memory, cloud-init's seed, and who logs in.

    ``network`` are qemu's words for more of it than ssh, ``sockets`` the files that those name.
    """

    user: str
    key: Path
    seed: Path
    cpus: int
    memory_mb: int
    network: Sequence[str] = ()
    sockets: Sequence[int] = ()


@contextlib.contextmanager
def started(
    disk: Path, folder: Path, guest: Guest, note: Callable[[str], None] = lambda _: None
) -> Iterator[Machine]:
    """Start a machine on a layer over ``disk``, which stays as it is; ended with the block.

    Raises BuildFailed with the console's last lines when it cannot be reached.
    """
    with launched(disk, folder, guest) as machine:
        machine.reach(note)
        yield machine


@contextlib.contextmanager
def launched(disk: Path, folder: Path, guest: Guest) -> Iterator[Machine]:
    """As :func:`started`, without waiting until ssh gets in."""
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
        *guest.network,
        *("-display", "none", "-monitor", "none", "-serial", f"file:{console}"),
    ]
    try:
        with (
            (folder / "vm.log").open("ab") as log,
            processes.started(words, os.environ, log, grace=20, pass_fds=guest.sockets) as process,
            reached_by(
                folder / "ssh_config", {"image": ("127.0.0.1", port)}, guest.user, guest.key
            ) as config,
        ):
            yield Machine("image", config, console, process)
    finally:
        layer.unlink(missing_ok=True)
