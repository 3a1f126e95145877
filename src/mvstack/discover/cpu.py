"""The processor, the cores that we may use, and memory."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from archspec.cpu import TARGETS

from mvstack.discover.machine import Machine
from mvstack.discover.view import View

GIB = 1 << 30


def read_cpu(view: View, machine: Machine) -> None:
    """Look at /proc/cpuinfo, the topology below /sys, affinity, cgroups and /proc/meminfo."""
    text = view.text("/proc/cpuinfo")
    blocks = _records(text or "")
    target = view.target()
    if target in TARGETS:
        machine.found("target", "archspec's name of the processor", target)
    else:
        machine.found("target", "archspec has not named the processor")
    places = _places(view, blocks)
    first = blocks[0] if blocks else {}
    model = (first.get("model name") or first.get("cpu", ""))[:100]
    model = model or machine.target or "unknown CPU"
    sockets = len({socket for socket, _ in places.values()})
    machine.cpu = f"{sockets} x {model}" if sockets else model
    if places:
        _read_cores(view, places, machine)
    elif blocks:
        machine.found("cores", "/proc/cpuinfo numbers no processor")
    else:
        lacking = "cannot be read" if text is None else "holds nothing that can be read"
        machine.found("cores", f"/proc/cpuinfo {lacking}")
    _read_memory(view, machine)


def _records(cpuinfo: str) -> list[dict[str, str]]:
    """The blocks of a cpuinfo text as key and value; lines without a colon are passed over."""
    pair = re.compile(r"^[ \t]*([^:\n]*?)[ \t]*:[ \t]*(.*?)[ \t]*$", re.M)
    blocks = (dict(pair.findall(block)) for block in re.split(r"\n\s*\n", cpuinfo))
    return [fields for fields in blocks if fields]


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


def _read_cores(view: View, places: dict[int, tuple[str, str]], machine: Machine) -> None:
    """Cores that this process may run on: the machine's, less affinity and cgroup quota."""
    total = len(set(places.values()))
    how = f"/proc/cpuinfo: {len(places)} threads on {total} cores"
    affinity = view.search("/proc/self/status", r"^Cpus_allowed_list:\s*(.*)$")
    allowed = cpu_list(affinity[1]) if affinity else set()
    mine = {number for number in places if not allowed or number in allowed}
    cores = len({places[number] for number in mine}) or total
    if cores < total:
        how += f", {cores} of them allowed by this process's affinity"
        machine.note(
            f"this process may run on {cores} of {total} cores (affinity): cores says {cores}"
        )
    limits = _limits(view, "cpu.max", r"([1-9][0-9]{0,14}) ([1-9][0-9]{0,14})")
    quota = min((int(limit[1]) / int(limit[2]) for limit in limits), default=None)
    if quota is not None and quota < cores:
        limited = max(1, int(quota))
        machine.note(
            f"a cgroup limits this process to {quota:g} CPUs of {cores} cores: cores says {limited}"
        )
        how += f", {quota:g} CPUs by cgroup quota"
        cores = limited
    machine.whole |= {"cores": total} if cores < total else {}
    machine.found("cores", how, cores)


def cpu_list(text: str) -> set[int]:
    """The numbers of a kernel list such as ``0-3,8``; empty when it is no such list."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*", part)
        if match is None:
            return set()
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def _read_memory(view: View, machine: Machine) -> None:
    match = view.search("/proc/meminfo", r"^MemTotal:\s*([0-9]{1,15}) kB")
    if match is None:
        machine.found("memory_gb", "/proc/meminfo has no MemTotal")
        return
    total, how = int(match[1]) * 1024, "/proc/meminfo: MemTotal in GiB, rounded down"
    limits = _limits(view, "memory.max", r"([1-9][0-9]{0,19})")
    limit = min((int(limit[1]) for limit in limits), default=total)
    if limit < total:
        machine.note(f"a cgroup limits memory to {limit / GIB:.1f} of {total / GIB:.1f} GiB")
        machine.whole["memory_gb"] = total // GIB
        total, how = limit, "cgroup memory limit in GiB, rounded down"
    machine.found("memory_gb", how, max(1, total // GIB))
    if total < GIB:
        machine.note(f"memory is {total / GIB:.2f} GiB: memory_gb says 1, the least it can")


def _limits(view: View, file: str, pattern: str) -> Iterator[re.Match[str]]:
    """What limits this process: ``file`` of its cgroup (version 2) and of all above it."""
    group = view.search("/proc/self/cgroup", r"^0::(/.*)$")
    path = PurePosixPath(group[1] if group and ".." not in group[1].split("/") else "/")
    for one in (path, *path.parents):
        match = re.fullmatch(pattern, view.word(f"/sys/fs/cgroup{one}".rstrip("/") + f"/{file}"))
        if match:
            yield match
