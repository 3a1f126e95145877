"""The operating system and what it runs in, allows to programs, and mounts for them."""

import re
import shlex
from contextlib import suppress

from mvstack.discover.machine import Machine
from mvstack.discover.view import View

MAJOR_ONLY = {"debian", "rocky", "almalinux", "rhel", "centos", "ol", "sles", "amzn", "fedora"}
"""Distributions whose minor releases keep the ABI: one name for all of them (rocky8)."""

SAME_AS = {"sle_hpc": "sles", "sled": "sles", "opensuse-leap": "opensuse"}
"""Other names of one distribution in /etc/os-release."""

VIRTUAL = {"Amazon EC2", "QEMU", "Google", "VMware, Inc.", "Xen"}
"""Makers in the firmware's tables that make virtual machines."""

NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}")

SMALL_MEMLOCK = 1 << 20
"""KiB below which registering memory with an adapter soon fails (1 GiB)."""

SMALL_SHM = 1024
"""MiB of /dev/shm below which MPI's shared memory does not fit many ranks."""


def read_os(view: View, machine: Machine) -> None:
    """Look at /etc/os-release, the hypervisor and the container."""
    _read_distribution(view, machine)
    if container := _container(view):
        machine.note(
            f"inside a container ({container}): devices, limits and libraries are the container's"
        )
    machine.hostname = view.word("/proc/sys/kernel/hostname")[:100]
    machine.hypervisor = _hypervisor(view)


def _read_distribution(view: View, machine: Machine) -> None:
    paths = ("/etc/os-release", "/usr/lib/os-release")
    path = next((path for path in paths if view.text(path) is not None), "")
    if not path:
        machine.found("os", "neither /etc/os-release nor /usr/lib/os-release can be read")
        return
    fields = _assignments(view.text(path) or "")
    ident, version = fields.get("ID", "").lower(), fields.get("VERSION_ID", "")
    title = machine.os_title = fields.get("PRETTY_NAME", "")[:100]
    if not ident:
        machine.found("os", f"{path} has no ID")
        return
    ident = SAME_AS.get(ident, ident)
    if not version:
        machine.note(f"{path} has no VERSION_ID: {ident} is a rolling or unreleased distribution")
    name = ident + (version.split(".")[0] if ident in MAJOR_ONLY else version)
    if NAME.fullmatch(name):
        machine.found("os", f"{path}: ID and VERSION_ID" + (f" ({title})" if title else ""), name)
    else:
        machine.found("os", f"{path} names {name!r}, which is not a valid name in a system file")


def _assignments(text: str) -> dict[str, str]:
    """The shell assignments of os-release(5); a line that is none is passed over."""
    fields = {}
    for name, value in re.findall(r"^\s*([A-Z][A-Z0-9_]*)=(.*)$", text, re.M):
        with suppress(ValueError):
            fields[name] = next(iter(shlex.split(value)), "")
    return fields


def _container(view: View) -> str:
    if view.exists("/.dockerenv"):
        return "docker"
    if view.exists("/run/.containerenv"):
        return "podman"
    if view.environment("APPTAINER_NAME") or view.environment("SINGULARITY_NAME"):
        return "apptainer"
    groups = view.text("/proc/1/cgroup") or ""
    return next((word for word in ("kubepods", "docker", "lxc") if word in groups), "")


def _hypervisor(view: View) -> str:
    vendor = view.word("/sys/class/dmi/id/sys_vendor")
    product = view.word("/sys/class/dmi/id/product_name")
    flagged = view.search("/proc/cpuinfo", r"^flags\s*:.*\bhypervisor\b")
    told = vendor in VIRTUAL or product == "Virtual Machine"  # Microsoft makes others, too
    if not flagged and not told:  # Arm has no such flag
        return ""
    detected = view.say("systemd-detect-virt --vm").strip()
    named = " ".join(word for word in (vendor, product) if word)
    return (named or ("" if detected == "none" else detected) or "unnamed")[:100]


def note_limits(view: View, machine: Machine) -> None:
    """Note what slows MPI down: ptrace_scope, too little memory to lock, a small /dev/shm."""
    scope = view.word("/proc/sys/kernel/yama/ptrace_scope")
    if re.fullmatch(r"[1-3]", scope):
        machine.found("cma", f"kernel.yama.ptrace_scope is {scope}", False)
        machine.note(
            f"kernel.yama.ptrace_scope is {scope}: users' processes may not read each other's "
            "memory (CMA), so messages within a node are copied twice; 0 allows it"
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
