"""The operating system, and whether it runs on a machine of its own."""

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
    if not flagged and vendor not in VIRTUAL:  # Arm has no such flag
        return ""
    detected = view.say("systemd-detect-virt --vm").strip()
    named = " ".join(word for word in (vendor, product) if word)
    return (named or ("" if detected == "none" else detected) or "unnamed")[:100]
