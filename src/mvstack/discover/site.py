"""What the kernel and the site allow, and the file systems that jobs write to."""

from __future__ import annotations

import re

from mvstack.discover.machine import Findings, Limits, Mount
from mvstack.discover.view import View

COMMANDS: tuple[tuple[str, ...], ...] = (("df", "-Pk", "/dev/shm"),)

SMALL_MEMLOCK = 1 << 20
"""KiB below which registering memory with an adapter soon fails (1 GiB)."""

SMALL_SHM = 1024
"""MiB of /dev/shm below which MPI's shared memory does not fit many ranks."""


def read_limits(view: View, fabric: str | None, findings: Findings) -> Limits:
    """Look at ptrace_scope, huge pages, /dev/shm, the locked memory limit, xpmem and knem."""
    scope = view.word("/proc/sys/kernel/yama/ptrace_scope")
    enabled = re.search(
        r"\[(\w+)\]", view.text("/sys/kernel/mm/transparent_hugepage/enabled") or ""
    )
    limits = Limits(
        ptrace_scope=int(scope) if re.fullmatch(r"[0-3]", scope) else None,
        transparent_hugepages=enabled[1][:20] if enabled else "",
        hugepages=_meminfo(view, "HugePages_Total"),
        hugepage_kb=_meminfo(view, "Hugepagesize"),
        shm_mb=_shm(view),
        memlock_kb=_memlock(view),
        xpmem=view.exists("/dev/xpmem"),
        knem=view.exists("/dev/knem"),
    )
    if limits.ptrace_scope:
        findings.note(
            f"kernel.yama.ptrace_scope is {limits.ptrace_scope}: for who is not root, copies "
            "between processes (CMA) fail and messages on one node are copied twice"
        )
    small = limits.memlock_kb is not None and 0 <= limits.memlock_kb < SMALL_MEMLOCK
    if small and fabric not in (None, "shm", "tcp"):
        findings.note(
            f"only {limits.memlock_kb} KiB may be locked (ulimit -l): {fabric} needs it unlimited"
        )
    if limits.shm_mb is not None and limits.shm_mb < SMALL_SHM:
        findings.note(f"/dev/shm has {limits.shm_mb} MiB: MPI on one node may run out of it")
    return limits


def _meminfo(view: View, name: str) -> int | None:
    match = re.search(rf"^{name}:\s*([0-9]{{1,15}})", view.text("/proc/meminfo") or "", re.M)
    return int(match[1]) if match else None


def _shm(view: View) -> int | None:
    match = re.search(r"\s([0-9]{1,15})\s+[0-9]+\s+[0-9]+\s+[0-9-]+%", view.say(*COMMANDS[0]))
    return int(match[1]) // 1024 if match else None


def _memlock(view: View) -> int | None:
    text = view.text("/proc/self/limits") or ""
    match = re.search(r"^Max locked memory\s+([0-9]{1,20}|unlimited)\s", text, re.M)
    if match is None:
        return None
    return -1 if match[1] == "unlimited" else int(match[1]) // 1024


def read_mounts(
    view: View, drivers: dict[str, str], findings: Findings
) -> tuple[list[str], list[Mount]]:
    """ROMIO's words for the file systems that are mounted, and the mounts.

    ``drivers``: type of a mount → ROMIO's driver for it.
    """
    text = view.text("/proc/mounts")
    if text is None:
        findings.found("file_systems", "/proc/mounts cannot be read")
        return [], []
    mounts = []
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) >= 4 and words[2] in drivers and words[1].startswith("/"):
            mounts.append(Mount(kind=words[2], path=words[1][:200], romio=drivers[words[2]]))
    shared = sorted({mount.romio for mount in mounts} - {"ufs"})
    # A plain file system is always there (/tmp); ROMIO without ufs could not write to it.
    findings.found(
        "file_systems",
        "/proc/mounts: "
        + (", ".join(f"{m.kind} {m.path}" for m in mounts if m.romio != "ufs") or "no shared ones"),
    )
    if any(mount.kind == "beegfs" for mount in mounts):
        findings.note("beegfs is mounted: ROMIO has no driver of its own for it, ufs serves")
    return ["ufs", *shared], mounts
