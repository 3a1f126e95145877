"""The file systems of a disk of its own machine, mounted here as that machine would mount them."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mvstack.image.walk import inside
from mvstack.support.errors import BuildFailed, CheckFailed, Missing, Problem
from mvstack.support.processes import run

_MOUNT = "mvstack-mount-"  # and the process that mounted it
#: What can be looked into: by file system, the options with which the kernel writes nothing.
_LOOK = {"ext4": "ro,noload", "xfs": "ro,norecovery,nouuid", "vfat": "ro"}


@dataclass(frozen=True)
class Volume:
    """A partition that holds something: where, in bytes, of what kind, and how fstab calls it."""

    number: int
    start: int
    size: int
    kind: str
    names: frozenset[str]


def volumes(disk: Path) -> list[Volume]:
    """The partitions of a raw disk or block device that are not empty, in order.

    Raises BuildFailed for what has no partition table.
    """
    done = run(["/usr/sbin/sfdisk", "--json", disk])
    if not done.ok:
        raise BuildFailed("the disk has no partition table", str(disk), found=done.errors.strip())
    table = json.loads(done.text)["partitiontable"]
    sector = int(table.get("sectorsize", 512))
    found = []
    for number, row in enumerate(table["partitions"], start=1):
        start, size = int(row["start"]) * sector, int(row["size"]) * sector
        words = ["/usr/sbin/blkid", "--probe", "--output", "export"]
        said = run([*words, f"--offset={start}", f"--size={size}", disk]).text
        facts = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        part = row.get("uuid") or f"{table['id'].removeprefix('0x')}-{number:02x}"
        known = {"UUID": facts.get("UUID"), "LABEL": facts.get("LABEL"), "PARTUUID": part.lower()}
        if kind := facts.get("TYPE"):
            names = frozenset(f"{name}={value}" for name, value in known.items() if value)
            found.append(Volume(number, start, size, kind, names))
    return found


@contextlib.contextmanager
def mounted(disk: Path, read_only: bool = False) -> Iterator[Path]:
    """The file tree of a disk, mounted as long as the block lasts: / and what its fstab names.

    Raises Missing when this machine gives no loop device, CheckFailed for a partition that nobody
    could look into: an audit that left it out would say that nothing is there.
    """
    # no TemporaryDirectory, which would empty the disk where it cannot be unmounted
    _release_leftovers()
    name = tempfile.mkdtemp(prefix=f"{_MOUNT}{os.getpid()}-")
    try:
        try:
            _mount_all(disk, Path(name), read_only)
            yield Path(name)
        except BaseException:
            _unmounted(name)
            raise
        if said := _unmounted(name):
            raise BuildFailed(
                "a disk could not be unmounted, and what is on it may not be whole",
                name,
                found=said,
                todo="see who uses it (fuser -m), then run the same command again",
            )
    finally:
        with contextlib.suppress(OSError):
            Path(name).rmdir()


def _mount_all(disk: Path, place: Path, read_only: bool) -> None:
    parts = volumes(disk)
    if odd := [one for one in parts if one.kind not in _LOOK]:
        raise CheckFailed(
            *(
                Problem(
                    f"partition {one.number} holds {one.kind}, which cannot be looked into",
                    str(disk),
                    allowed=", ".join(_LOOK),
                    todo="name a base without it: swap, LVM and encrypted disks are not audited",
                )
                for one in odd
            )
        )
    root = _mount_root(disk, parts, place, read_only)
    rest = [one for one in parts if one != root]
    table = inside(place, "/etc/fstab")
    lines = table.read_text(errors="replace").splitlines() if rest and table else []
    rows = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    # a folder before what is mounted below it
    for what, where, *_ in sorted((row for row in rows if len(row) > 1), key=lambda row: row[1]):
        name, _, value = what.partition("=")
        for one in [one for one in rest if f"{name}={value.strip(chr(34))}" in one.names]:
            rest.remove(one)
            if below := inside(place, where):
                _mount(disk, one, below, read_only)
    if rest:
        raise CheckFailed(
            *(
                Problem(
                    f"partition {one.number} holds {one.kind}, and /etc/fstab does not say where",
                    str(disk),
                    found=" ".join(sorted(one.names)),
                    todo="mount it by UUID, LABEL or PARTUUID, or name a base without it",
                )
                for one in rest
            )
        )


def _mount_root(disk: Path, parts: list[Volume], place: Path, read_only: bool) -> Volume:
    candidates = [one for one in parts if one.kind != "vfat"]
    for one in candidates:
        _mount(disk, one, place, read_only)
        if len(candidates) == 1 or (place / "etc").is_dir():
            return one
        run(["umount", place])
    raise CheckFailed("no partition of the disk holds a system's /etc", str(disk))


def _mount(disk: Path, part: Volume, place: Path, read_only: bool) -> None:
    options = f"loop,offset={part.start},sizelimit={part.size}"
    options += f",{_LOOK[part.kind]}" if read_only else ""
    done = run(["mount", "-t", part.kind, "-o", options, disk, place])
    if not done.ok:
        raise Missing(
            "a disk could not be mounted through a loop device",
            str(disk),
            found=done.errors.strip(),
            todo="run it where root may use /dev/loop-control; a container needs it passed",
        )


def _release_leftovers() -> None:
    """Unmount what a process of ours left that was killed with a disk mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = Path(line.split()[1])
        pid = place.name.removeprefix(_MOUNT).partition("-")[0]
        if place.name.startswith(_MOUNT) and not Path(f"/proc/{pid}").exists():
            _unmounted(str(place))
            with contextlib.suppress(OSError):
                place.rmdir()


def _unmounted(name: str) -> str:
    """Unmount it and what is below; what umount said when it could not, and let go of it then."""
    os.sync()
    done = run(["umount", "--recursive", name])
    if done.ok or not os.path.ismount(name):
        return ""
    run(["umount", "--recursive", "--lazy", name])
    return done.errors.strip() or "it gave no reason"
