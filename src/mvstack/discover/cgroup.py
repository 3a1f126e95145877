"""What the cgroups (version 2 or 1) of this process allow; the tightest of all levels counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from mvstack.discover.view import View

MOUNT = "/sys/fs/cgroup"
MOST = 1 << 60
"""Bytes above which version 1 means "no limit" (it writes a number near 2^63)."""


def cpu_quota(view: View) -> float | None:
    """CPUs that may be used at a time, or None for no limit."""
    found = []
    for folder in _folders(view, ""):
        words = view.word(f"{folder}/cpu.max").split()
        if len(words) == 2:
            found.append(_ratio(words[0], words[1]))
    for folder in _folders(view, "cpu"):
        quota = view.word(f"{folder}/cpu.cfs_quota_us")
        period = view.word(f"{folder}/cpu.cfs_period_us")
        found.append(_ratio(quota, period))
    limits = [value for value in found if value is not None]
    return min(limits, default=None)


def memory_limit(view: View) -> int | None:
    """Bytes that may be used, or None for no limit."""
    texts = [view.word(f"{folder}/memory.max") for folder in _folders(view, "")]
    texts += [view.word(f"{folder}/memory.limit_in_bytes") for folder in _folders(view, "memory")]
    values = [int(text) for text in texts if re.fullmatch(r"[0-9]{1,20}", text)]
    return min((value for value in values if 0 < value < MOST), default=None)


def _ratio(quota: str, period: str) -> float | None:
    if not (re.fullmatch(r"[0-9]{1,15}", quota) and re.fullmatch(r"[0-9]{1,15}", period)):
        return None  # "max", "-1" or absent: no limit
    return int(quota) / int(period) if int(period) and int(quota) else None


def _folders(view: View, controller: str) -> Iterator[str]:
    """The folders of this process's group and all above it; controller "" is version 2."""
    for line in (view.text("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3 or controller not in parts[1].split(","):
            continue
        base = f"{MOUNT}/{controller}" if controller else MOUNT
        path = PurePosixPath("/" + parts[2].lstrip("/"))
        if ".." in path.parts:
            path = PurePosixPath("/")
        for level in (path, *path.parents):
            yield base + str(level).rstrip("/")
