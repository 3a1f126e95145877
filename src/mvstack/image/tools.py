"""The programs that making an image takes: are they here, and run them with a log."""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mvstack.support.errors import BuildFailed, Missing, Problem
from mvstack.support.processes import follow

#: Program → Debian's package; the reasons stand where each is used.
PACKAGES = {
    "packer": "packer",
    "zstd": "zstd",
    "mmdebstrap": "mmdebstrap",
    "sfdisk": "fdisk",
    "mkfs.ext4": "e2fsprogs",
    "extlinux": "extlinux",
    "qemu-img": "qemu-utils",
    "qemu-system-x86_64": "qemu-system-x86",
    "xorriso": "xorriso",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "losetup": "mount",
    "blkid": "util-linux",
    "unshare": "util-linux",
}
#: The boot sector that extlinux's package does not hold itself: file → package.
FILES = {
    "/usr/lib/EXTLINUX/mbr.bin": "extlinux",
    "/usr/lib/syslinux/modules/bios": "syslinux-common",
}
FOR_ALL = ("packer", "zstd")
FOR_AUDIT = ("sfdisk", "blkid", "losetup")
FOR_TEST = ("qemu-img", "qemu-system-x86_64", "xorriso", "ssh", "ssh-keygen")
FOR_QEMU = (*FOR_AUDIT, *FOR_TEST, "mmdebstrap", "mkfs.ext4", "extlinux", "unshare")


def need(programs: Sequence[str], why: str, root: bool = False) -> None:
    """Raise Missing naming every program that is not here, with the line that brings them."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    lacking = sorted({PACKAGES[one] for one in programs if not shutil.which(one, path=path)})
    if "extlinux" in programs:
        lacking += [name for file, name in FILES.items() if not Path(file).exists()]
    problems = []
    if lacking:
        names = " ".join(sorted(set(lacking)))
        problems.append(
            Problem(
                f"missing on this machine: {names}",
                because=why,
                todo=f"apt-get install -y --no-install-recommends {names}",
            )
        )
    if root and os.geteuid() != 0:
        problems.append(
            Problem("this needs root", because=f"{why}: loop devices are mounted", todo="use sudo")
        )
    if problems:
        raise Missing(*problems, outcome="Nothing was changed.")


def run(
    command: Sequence[str | Path],
    log: Path,
    note: Callable[[str], None] = lambda _: None,
    *,
    what: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a program to its end with its output in ``log``; ``note`` gets each line.

    Raises BuildFailed with its last words when its status is not 0.
    """
    words = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    last: list[str] = []
    with log.open("a", buffering=1) as stream:
        stream.write(f"$ {shlex.join(words)}\n")

        def line(text: str) -> None:
            stream.write(text + "\n")
            if text.strip():
                last[:] = [*last[-5:], text.strip()]
                note(text.strip())

        path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        status = follow(words, {**os.environ, "PATH": path, **(env or {})}, line=line, cwd=cwd)
    if status:
        raise BuildFailed(
            f"{what} failed: {words[0]} ended with status {status}",
            str(log),
            found=" | ".join(last[-4:])[:1000],
            todo="read the log named above, then run the same command again",
        )
