"""The base disk for QEMU: a distribution's packages on a disk that starts, made from nothing else.

mmdebstrap installs the packages, mkfs.ext4 fills a partition with them, extlinux makes it start
from a BIOS. With SOURCE_DATE_EPOCH and fixed identifiers, the same packages give the same files.
"""

import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mvstack.image import tools
from mvstack.image.disks import mounted
from mvstack.support import hashes, locks
from mvstack.support.errors import BuildFailed
from mvstack.support.processes import run

#: What a disk needs to start and be provisioned; all else the provisioning brings.
PACKAGES = (
    *("linux-image-cloud-amd64", "systemd-sysv", "dbus", "openssh-server", "cloud-init"),
    *("cloud-guest-utils", "sudo", "ifupdown", "isc-dhcp-client", "netbase", "e2fsprogs"),
    "ca-certificates",
)
_UUID = uuid.uuid5(uuid.NAMESPACE_DNS, "root.mvapich-stack")
START = 1  # MiB before the partition
LOCK, HALF = ".lock", ".base-"  # in the folder of base disks: who makes one, and what is half made
_FILES = {
    "etc/fstab": f"UUID={_UUID} / ext4 errors=remount-ro,discard 0 1\n",
    "etc/hostname": "localhost\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
    # NoCloud alone: other sources are looked for on the network, which takes minutes
    "etc/cloud/cloud.cfg.d/90-mvapich-stack.cfg": (
        "# Written by mvapich-stack (src/mvstack/image/base.py).\n"
        "datasource_list: [NoCloud, None]\n"
        # one kind of key: making the others takes longer than all else at the first start
        "ssh_genkeytypes: [ed25519]\n"
        "ssh_deletekeys: true\n"
        "locale: C.UTF-8\n"  # the others are not generated
    ),
    "boot/extlinux/extlinux.conf": (
        "DEFAULT linux\nPROMPT 0\nTIMEOUT 0\nLABEL linux\n  LINUX /vmlinuz\n  INITRD /initrd.img\n"
        f"  APPEND root=UUID={_UUID} ro console=ttyS0 net.ifnames=0 quiet\n"
    ),
    # a host key of one kind only
    "etc/ssh/sshd_config.d/90-mvapich-stack.conf": "HostKey /etc/ssh/ssh_host_ed25519_key\n",
}


@dataclass(frozen=True)
class Base:
    """What decides a base disk of ``disk_gb`` GB from the packages of ``suite``.

    ``early`` are packages beside those that a disk needs to start. ``packages`` is a list of exact
    versions (packages.txt of an earlier build), "" for the newest. ``epoch`` is the time that its
    files bear, in seconds since 1970.
    """

    suite: str
    disk_gb: int
    early: Sequence[str] = ()
    packages: str = ""
    epoch: int = 0

    @property
    def key(self) -> str:
        """A hash of all but the time; disks are kept by it."""
        code = hashes.normalised(Path(__file__).read_text())
        return hashes.of(code, self.suite, self.disk_gb, list(self.early), self.packages)[:16]


def make_base(disk: Path, of: Base, log: Path, note: Callable[[str], None]) -> None:
    """Make ``disk`` (qcow2), whole or not at all.

    Raises Missing without a loop device, BuildFailed with the log.
    """
    disk.parent.mkdir(parents=True, exist_ok=True)
    with (
        # two builds of one base disk would replace each other's
        locks.hold(
            disk.parent / LOCK,
            waiting=lambda holder: note(f"waiting for the build of a base disk by {holder}"),
        ),
        tempfile.TemporaryDirectory(dir=disk.parent, prefix=HALF) as name,
    ):
        if disk.is_file():
            return  # another build made it meanwhile
        work = Path(name)
        root, raw = work / "root", work / "raw"
        _bootstrap(root, of, log, note)
        configure(root)
        note("making the disk")
        fill_disk(raw, root, of, log)
        note("compressing")
        whole = work / "disk.qcow2"
        tools.run(
            ["qemu-img", "convert", "-O", "qcow2", "-W", "-m", "4", raw, whole],
            log,
            what="making the qcow2",
        )
        whole.replace(disk)


def _bootstrap(root: Path, of: Base, log: Path, note: Callable[[str], None]) -> None:
    pins = root.parent / "pins"
    pins.write_text(pinned(of.packages))
    # With mounts of its own: /proc and /sys that it mounts below the root end with it however it
    # ends, and whoever then removes the half-made root removes nothing through them.
    command: list[str | Path] = ["unshare", "--mount", "--propagation", "private"]
    command += ["mmdebstrap", "--variant=minbase", f"--include={','.join([*PACKAGES, *of.early])}"]
    if of.packages:
        # before the first package is chosen, and gone from the disk afterwards
        place = "etc/apt/preferences.d/mvapich-stack-build"
        command += [
            f'--setup-hook=mkdir -p "$1/etc/apt/preferences.d" && cp "{pins}" "$1/{place}"',
            f'--customize-hook=rm "$1/{place}"',
        ]
    # units that start at every boot and have nothing to do here; a third of the first start
    masked = " ".join(f'"$1/etc/systemd/system/{unit}.timer"' for unit in ("e2scrub_all", "fstrim"))
    command += [
        f"--customize-hook=for unit in {masked}; do ln -sf /dev/null $unit; done",
        '--customize-hook=chroot "$1" passwd --lock root',
        of.suite,
        root,
    ]
    times = {"SOURCE_DATE_EPOCH": str(of.epoch)}
    tools.run(command, log, note, what="bringing the packages", env=times)


def pinned(packages: str) -> str:
    """apt's preferences for a list of ``name:arch=version`` lines."""
    rows = []
    for line in packages.splitlines():
        name, _, version = line.partition("=")
        if version:
            package = name.partition(":")[0]
            rows.append(f"Package: {package}\nPin: version {version}\nPin-Priority: 1001\n")
    return "\n".join(rows)


def configure(root: Path) -> None:
    """Let the file tree ``root`` start as a machine of its own, from the disk that it is put on."""
    for name, text in _FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (root / "etc" / "ssh").glob("ssh_host_*"):
        path.unlink()
    (root / "etc" / "machine-id").write_text("")
    # the host's own, which mmdebstrap brought for its chroot
    (root / "etc" / "resolv.conf").unlink(missing_ok=True)
    shutil.rmtree(root / "var" / "log" / "journal", ignore_errors=True)


def fill_disk(raw: Path, root: Path, of: Base, log: Path) -> None:
    """Write ``raw``, a disk that starts, with the file tree ``root`` on it."""
    _partition(raw, root, of, log)
    with mounted(raw) as mount:
        tools.run(
            ["extlinux", "--install", mount / "boot" / "extlinux"], log, what="making it start"
        )
    sector = Path("/usr/lib/EXTLINUX/mbr.bin").read_bytes()[:440]
    with raw.open("r+b") as stream:
        stream.write(sector)


def _partition(raw: Path, root: Path, of: Base, log: Path) -> None:
    size = of.disk_gb * 1024
    with raw.open("wb") as stream:
        stream.truncate(size * 2**20)
    table = f"label: dos\nlabel-id: 0x6d766170\nstart={START}MiB, type=83, bootable\n"
    done = run(["/usr/sbin/sfdisk", "--quiet", raw], data=table.encode())
    if not done.ok:
        raise BuildFailed("the disk could not be partitioned", str(raw), found=done.errors)
    command: list[str | Path] = [
        "mkfs.ext4", "-q", "-F", "-L", "root", "-U", str(_UUID),
        # extlinux of Debian 12 reads no 64bit and no metadata_csum_seed
        "-O", "^64bit,^metadata_csum",
        "-E", f"offset={START * 2**20},hash_seed={_UUID},root_owner=0:0",
        "-d", root, raw, f"{size - START - 1}M",
    ]  # fmt: skip
    # e2fsprogs takes the times that it writes itself from here
    tools.run(
        command, log, what="filling the disk", env={"E2FSPROGS_FAKE_TIME": str(of.epoch or 1)}
    )
