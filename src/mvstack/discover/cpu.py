"""Processors, cores that we may use, NUMA nodes and memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mvstack.discover.cgroup import cpu_quota, memory_limit
from mvstack.discover.findings import Findings
from mvstack.discover.machine import Cpu
from mvstack.discover.processor import architecture_of, named, processor, records
from mvstack.discover.view import View

GIB = 1 << 30


@dataclass(frozen=True)
class Node:
    """Processors and memory: ``cores`` and ``memory_gb`` are those that a job here may use."""

    cpu: Cpu
    target: str | None
    cores: int | None
    memory_gb: int | None


def read_cpu(view: View, findings: Findings) -> Node:
    """Look at /proc/cpuinfo, the topology below /sys, affinity, cgroups and /proc/meminfo."""
    text = view.text("/proc/cpuinfo")
    blocks = records(text or "")
    if text is None:
        for name in ("target", "cores"):
            findings.found(name, "/proc/cpuinfo cannot be read")
    uname = view.say("uname", "-m").strip()
    architecture, target = _target(blocks, uname, findings) if blocks else (None, None)
    if text is not None and not blocks:
        for name in ("target", "cores"):
            findings.found(name, "/proc/cpuinfo holds nothing that can be read")
    places = _places(view, blocks)
    cores_all = len(set(places.values())) or None
    first = blocks[0] if blocks else {}
    cpu = Cpu(
        architecture=architecture,
        vendor=(first.get("vendor_id") or first.get("CPU implementer", ""))[:60],
        model=(first.get("model name") or first.get("cpu", ""))[:100],
        cores_all=cores_all,
        threads=len(places) or None,
        sockets=len({socket for socket, _ in places.values()}) or None,
        numa_nodes=_numa_nodes(view),
    )
    return Node(cpu, target, _usable(view, places, findings), _memory(view, findings))


def _target(
    blocks: list[dict[str, str]], uname: str, findings: Findings
) -> tuple[str | None, str | None]:
    architecture = architecture_of(blocks[0], uname)
    if architecture is None:
        said = f", while uname -m says {uname}" if uname else ""
        findings.found("target", f"/proc/cpuinfo describes no processor that is known here{said}")
        return None, None
    if not uname and architecture == "ppc64le":
        findings.note("no `uname -m`: POWER is taken to be little-endian (ppc64le)")
    cpu = processor(blocks[0], architecture)
    if not cpu.features and architecture in ("x86_64", "aarch64"):
        findings.found("target", "/proc/cpuinfo lists no CPU flags")
        return architecture, None
    result = named(cpu)
    findings.found("target", f"archspec's table, flags of /proc/cpuinfo ({cpu.vendor})")
    if result.near:
        findings.note(
            f"target {result.target}: {result.near} would fit but for "
            f"{', '.join(result.lacking)}, which /proc/cpuinfo does not list "
            "(a hypervisor or the firmware may hide it)"
        )
    others = {processor(block, architecture).features for block in blocks if "flags" in block}
    if len(others) > 1:
        findings.note("the processors of this machine differ in their flags; the first was used")
    return architecture, result.target


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
    quota = cpu_quota(view)
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


def _numa_nodes(view: View) -> int | None:
    names = view.names("/sys/devices/system/node")
    return sum(bool(re.fullmatch(r"node[0-9]+", name)) for name in names) or None


def _memory(view: View, findings: Findings) -> int | None:
    match = re.search(r"^MemTotal:\s*([0-9]{1,15}) kB", view.text("/proc/meminfo") or "", re.M)
    if match is None:
        findings.found("memory_gb", "/proc/meminfo has no MemTotal")
        return None
    total, how = int(match[1]) * 1024, "/proc/meminfo: MemTotal in GiB, rounded down"
    limit = memory_limit(view)
    if limit is not None and limit < total:
        findings.note(f"a cgroup limits memory to {limit / GIB:.1f} of {total / GIB:.1f} GiB")
        total, how = limit, "cgroup memory limit in GiB, rounded down"
    findings.found("memory_gb", how)
    if total < GIB:
        findings.note(f"memory is {total / GIB:.2f} GiB: memory_gb says 1, the least it can")
    return max(1, total // GIB)
