"""The processor, the cores that we may use, and memory.

archspec names the CPU of the machine that it runs on; its checks are used here on any cpuinfo text,
which may be another machine's. A test holds the two against each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from archspec.cpu import TARGETS, Microarchitecture
from archspec.cpu.detect import COMPATIBILITY_CHECKS, partial_uarch
from archspec.cpu.schema import TARGETS_JSON

from mvstack.discover.machine import Findings
from mvstack.discover.view import View

GIB = 1 << 30
NEAR = 3
"""How many missing flags still make a named target worth mentioning."""


@dataclass(frozen=True)
class Node:
    """The processors, such as "2 x AMD EPYC 7742"; cores and memory that a job here may use."""

    architecture: str | None
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
        for name in ("target", "cores"):
            findings.found(name, f"/proc/cpuinfo {lacking}")
    uname = view.say("uname", "-m").strip()
    architecture, target = _target(blocks, uname, findings) if blocks else (None, None)
    places = _places(view, blocks)
    first = blocks[0] if blocks else {}
    model = (first.get("model name") or first.get("cpu", ""))[:100] or target or "unknown CPU"
    sockets = len({socket for socket, _ in places.values()})
    return Node(
        architecture=architecture,
        title=f"{sockets} x {model}" if sockets else model,
        target=target,
        cores=_usable(view, places, findings),
        memory_gb=_memory(view, findings),
    )


def _target(
    blocks: list[dict[str, str]], uname: str, findings: Findings
) -> tuple[str | None, str | None]:
    architecture = _architecture(blocks[0], uname)
    if architecture is None:
        said = f", while uname -m says {uname}" if uname else ""
        findings.found("target", f"/proc/cpuinfo describes no processor that is known here{said}")
        return None, None
    if not uname and architecture == "ppc64le":
        findings.note("no `uname -m`: POWER is taken to be little-endian (ppc64le)")
    cpu = _processor(blocks[0], architecture)
    if not cpu.features and architecture in ("x86_64", "aarch64"):
        findings.found("target", "/proc/cpuinfo lists no CPU flags")
        return architecture, None
    best, near = named(cpu, architecture)
    findings.found("target", f"archspec's table, flags of /proc/cpuinfo ({cpu.vendor})")
    if near is not None:
        findings.note(
            f"target {best.name}: {near.name} would fit but for "
            f"{', '.join(sorted(near.features - cpu.features))}, which /proc/cpuinfo does not list "
            "(a hypervisor or the firmware may hide it)"
        )
    if len({frozenset(block["flags"].split()) for block in blocks if "flags" in block}) > 1:
        findings.note("the processors of this machine differ in their flags; the first was used")
    return architecture, best.name


def _records(cpuinfo: str) -> list[dict[str, str]]:
    """The blocks of a cpuinfo text as key and value; lines without a colon are passed over."""
    blocks = []
    for block in re.split(r"\n\s*\n", cpuinfo):
        pairs = [line.partition(":") for line in block.splitlines()]
        fields = {key.strip(): value.strip() for key, colon, value in pairs if colon}
        if fields:
            blocks.append(fields)
    return blocks


def _architecture(record: dict[str, str], uname: str) -> str | None:
    """The architecture that both ``uname -m`` (may be "") and the record speak for, else None."""
    if "vendor_id" in record and "flags" in record:
        seen = ["x86_64"]
    elif "CPU implementer" in record:
        seen = ["aarch64"]
    elif re.search(r"POWER[0-9]+", record.get("cpu", "")):
        seen = ["ppc64le", "ppc64"]
    elif record.get("isa", "").startswith("rv64"):
        seen = ["riscv64"]
    else:
        return None
    if not uname:
        return seen[0]
    return uname if uname in seen else None


def _processor(record: dict[str, str], architecture: str) -> Microarchitecture:
    """The processor of one cpuinfo record as archspec describes processors.

    archspec adds what a flag implies (ssse3: sse3).
    """
    arm = TARGETS_JSON["conversions"]["arm_vendors"]
    implementer = record.get("CPU implementer", "")
    power = re.search(r"POWER([0-9]{1,3})", record.get("cpu", ""))
    uarch = {"sifive,u74-mc": "u74mc", "spacemit,x60": "x60"}.get(record.get("uarch", ""), "")
    return partial_uarch(
        name=uarch if architecture == "riscv64" else "",
        vendor={
            "x86_64": record.get("vendor_id", ""),
            "aarch64": str(arm.get(implementer, implementer)),
        }.get(architecture, "generic"),
        features=set(record.get("flags", record.get("Features", "")).split()),
        generation=int(power[1]) if power else 0,
        cpu_part=record.get("CPU part", ""),
    )


def named(
    cpu: Microarchitecture, architecture: str
) -> tuple[Microarchitecture, Microarchitecture | None]:
    """The most special target of archspec's table that ``cpu`` can run, as archspec chooses it.

    And, where that is a generic one, the vendor's that it misses by a few flags only.
    """
    root, fits = TARGETS[architecture], COMPATIBILITY_CHECKS[architecture]
    if architecture.startswith("ppc"):  # whose check is for the architecture it runs on

        def fits(cpu: Microarchitecture, target: Microarchitecture) -> bool:
            return bool(target.family == root and target.generation <= cpu.generation)

    fitting = [target for target in TARGETS.values() if fits(cpu, target)]
    generic = [target for target in fitting if target.vendor == "generic"]
    base = max(generic, key=_rank, default=root)
    if cpu.cpu_part and any(target.cpu_part == cpu.cpu_part for target in fitting):
        fitting = [target for target in fitting if target.cpu_part == cpu.cpu_part]
    # Only below the best generic target: a newer CPU that lacks one rare flag must not be
    # called by the name of a much older one.
    best = max((target for target in fitting if target > base), key=_rank, default=base)
    if best.vendor != "generic":
        return best, None  # a zen2 is no zen3 that lacks three flags
    near = [
        target
        for target in TARGETS.values()
        if target.vendor == cpu.vendor
        and target > best
        and 0 < len(target.features - cpu.features) <= NEAR
    ]
    return best, max(near, key=_rank, default=None)


def _rank(target: Microarchitecture) -> tuple[int, int]:
    return len(target.ancestors), len(target.features)


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
