"""The processor, the cores that we may use, and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from archspec.cpu import TARGETS

from mvstack.discover.machine import Findings
from mvstack.discover.view import View

GIB = 1 << 30


@dataclass(frozen=True)
class Node:
    """The processors, such as "2 x AMD EPYC 7742"; cores and memory that a job here may use."""

    title: str
    target: str | None
    cores: int | None
    memory_gb: int | None


def read_cpu(view: View, findings: Findings) -> Node:
    """Look at /proc/cpuinfo, the topology below /sys, affinity, cgroups and /proc/meminfo."""
    text = view.text("/proc/cpuinfo")
    blocks = _records(text or "")
    if not blocks:
        lacking = "cannot be read" if text is None else "holds nothing that can be read"
        findings.found("cores", f"/proc/cpuinfo {lacking}")
    target = _target(view, findings)
    places = _places(view, blocks)
    first = blocks[0] if blocks else {}
    model = (first.get("model name") or first.get("cpu", ""))[:100] or target or "unknown CPU"
    sockets = len({socket for socket, _ in places.values()})
    return Node(
        title=f"{sockets} x {model}" if sockets else model,
        target=target,
        cores=_usable(view, places, findings),
        memory_gb=_memory(view, findings),
    )


def _target(view: View, findings: Findings) -> str | None:
    name = view.target()
    if name not in TARGETS:
        findings.found("target", "archspec has not named the processor")
        return None
    findings.found("target", "archspec's name of the processor")
    return name


def _records(cpuinfo: str) -> list[dict[str, str]]:
    """The blocks of a cpuinfo text as key and value; lines without a colon are passed over."""
    blocks = []
    for block in re.split(r"\n\s*\n", cpuinfo):
        pairs = [line.partition(":") for line in block.splitlines()]
        fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        if fields:
            blocks.append(fields)
    return blocks


def _places(view: View, blocks: list[dict[str, str]]) -> dict[int, tuple[str, str]]:
    """Socket and core of each logical processor; /sys where cpuinfo does not tell (Arm)."""
    places = {}
    for block in blocks:
        number = block.get("processor", "")
        if not re.fullmatch(r"[0-9]{1,6}", number):
            continue
        if "core id" in block:
            places[int(number)] = (block.get("physical id", "0"), block["core id"])
            continue
        folder = f"/sys/devices/system/cpu/cpu{int(number)}/topology"
        siblings = view.word(f"{folder}/core_cpus_list")
        siblings = siblings or view.word(f"{folder}/thread_siblings_list")
        socket = view.word(f"{folder}/physical_package_id") or "0"
        places[int(number)] = (socket, siblings or f"cpu{number}")
    return places


def _usable(view: View, places: dict[int, tuple[str, str]], findings: Findings) -> int | None:
    """Cores that this process may run on: the machine's, less affinity and cgroup quota."""
    if not places:
        findings.how.setdefault("cores", "/proc/cpuinfo numbers no processor")
        return None
    total = len(set(places.values()))
    how = f"/proc/cpuinfo: {len(places)} threads on {total} cores"
    allowed = cpu_list(_status_field(view, "Cpus_allowed_list"))
    mine = {number for number in places if not allowed or number in allowed}
    cores = len({places[number] for number in mine}) or total
    if cores < total:
        how += f", {cores} of them allowed by this process's affinity"
        findings.note(
            f"this process may run on {cores} of {total} cores (affinity): cores says {cores}"
        )
    quota = _cpu_quota(view)
    if quota is not None and quota < cores:
        limited = max(1, int(quota))
        findings.note(
            f"a cgroup limits this process to {quota:g} CPUs of {cores} cores: cores says {limited}"
        )
        how += f", {quota:g} CPUs by cgroup quota"
        cores = limited
    findings.found("cores", how)
    return cores


def cpu_list(text: str) -> set[int]:
    """The numbers of a kernel list such as ``0-3,8``; empty when it is no such list."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*", part)
        if match is None:
            return set()
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def _status_field(view: View, name: str) -> str:
    match = re.search(rf"^{name}:\s*(.*)$", view.text("/proc/self/status") or "", re.M)
    return match[1] if match else ""


def _memory(view: View, findings: Findings) -> int | None:
    match = re.search(r"^MemTotal:\s*([0-9]{1,15}) kB", view.text("/proc/meminfo") or "", re.M)
    if match is None:
        findings.found("memory_gb", "/proc/meminfo has no MemTotal")
        return None
    total, how = int(match[1]) * 1024, "/proc/meminfo: MemTotal in GiB, rounded down"
    limit = _memory_limit(view)
    if limit is not None and limit < total:
        findings.note(f"a cgroup limits memory to {limit / GIB:.1f} of {total / GIB:.1f} GiB")
        total, how = limit, "cgroup memory limit in GiB, rounded down"
    findings.found("memory_gb", how)
    if total < GIB:
        findings.note(f"memory is {total / GIB:.2f} GiB: memory_gb says 1, the least it can")
    return max(1, total // GIB)


def _cpu_quota(view: View) -> float | None:
    """CPUs that may be used at a time, or None for no limit."""
    limits = []
    for folder in _groups(view):
        match = re.fullmatch(r"([0-9]{1,15}) ([0-9]{1,15})", view.word(f"{folder}/cpu.max"))
        if match and int(match[1]) and int(match[2]):
            limits.append(int(match[1]) / int(match[2]))
    return min(limits, default=None)


def _memory_limit(view: View) -> int | None:
    """Bytes that may be used, or None for no limit."""
    words = [view.word(f"{folder}/memory.max") for folder in _groups(view)]
    return min(
        (int(word) for word in words if re.fullmatch(r"[1-9][0-9]{0,19}", word)), default=None
    )


def _groups(view: View) -> list[str]:
    """The folders of this process's cgroup (version 2) and of all above it."""
    match = re.search(r"^0::(/.*)$", view.text("/proc/self/cgroup") or "", re.M)
    if match is None or ".." in match[1].split("/"):
        return ["/sys/fs/cgroup"]
    path = PurePosixPath(match[1])
    return [f"/sys/fs/cgroup{one}".rstrip("/") for one in (path, *path.parents)]
