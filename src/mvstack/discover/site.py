"""What the kernel and the site allow, and the file systems that jobs write to."""

import re

from mvstack.discover.machine import Machine
from mvstack.discover.view import View

SMALL_MEMLOCK = 1 << 20
"""KiB below which registering memory with an adapter soon fails (1 GiB)."""

SMALL_SHM = 1024
"""MiB of /dev/shm below which MPI's shared memory does not fit many ranks."""


def note_limits(view: View, machine: Machine) -> None:
    """Note what slows MPI down: ptrace_scope, too little memory to lock, a small /dev/shm."""
    scope = view.word("/proc/sys/kernel/yama/ptrace_scope")
    if re.fullmatch(r"[1-3]", scope):
        machine.note(
            f"kernel.yama.ptrace_scope is {scope}: for who is not root, copies "
            "between processes (CMA) fail and messages on one node are copied twice"
        )
    memlock = view.search("/proc/self/limits", r"^Max locked memory\s+([0-9]{1,20})\s")
    kib = int(memlock[1]) // 1024 if memlock else SMALL_MEMLOCK
    fabric = machine.fabric
    if kib < SMALL_MEMLOCK and fabric not in (None, "shm", "tcp"):
        machine.note(f"only {kib} KiB may be locked (ulimit -l): {fabric} needs it unlimited")
    row = re.search(r"\s([0-9]{1,15})\s+[0-9]+\s+[0-9]+\s+[0-9-]+%", view.say("df -Pk /dev/shm"))
    if row and (shm := int(row[1]) // 1024) < SMALL_SHM:
        machine.note(f"/dev/shm has {shm} MiB: MPI on one node may run out of it")


def read_mounts(view: View, drivers: dict[str, str], machine: Machine) -> None:
    """ROMIO's words for the file systems that are mounted.

    ``drivers``: type of a mount → ROMIO's driver for it.
    """
    text = view.text("/proc/mounts")
    if text is None:
        machine.found("file_systems", "/proc/mounts cannot be read", [])
        return
    rows = [line.split(" ") for line in text.splitlines()]
    mounts = [row[1:3] for row in rows if len(row) >= 4 and row[2] in drivers]
    shared = [f"{kind} {path[:200]}" for path, kind in mounts if drivers[kind] != "ufs"]
    # A plain file system is always there (/tmp); ROMIO without ufs could not write to it.
    words = ["ufs", *sorted({drivers[kind] for _, kind in mounts} - {"ufs"})]
    machine.found("file_systems", "/proc/mounts: " + (", ".join(shared) or "no shared ones"), words)
    if any(kind == "beegfs" for _, kind in mounts):
        machine.note("beegfs is mounted: ROMIO has no driver of its own for it, ufs serves")
