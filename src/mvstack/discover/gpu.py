"""GPUs and accelerators that a program here can use, and those that it cannot."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from mvstack.discover.machine import Accelerator, Findings
from mvstack.discover.view import View

KFD = "/sys/class/kfd/kfd/topology/nodes"
NVIDIA = "/proc/driver/nvidia"
MI300A = 0x74A0
"""PCI device of the MI300A (pci.ids: Aqua Vanjaram); the MI300X is 0x74a1, both are gfx942."""

VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x1da3": "gaudi"}


@dataclass(frozen=True)
class Gpus:
    """The word for a system file, how many, and all that was seen."""

    gpu: str | None
    count: int | None
    accelerators: list[Accelerator]


def read_gpus(view: View, findings: Findings) -> Gpus:
    """Look below /proc/driver/nvidia, /sys/class/{kfd,drm,accel,habanalabs} and at nvidia-smi."""
    readers = (_nvidia, _amd, _intel, _gaudi)
    seen = [item for read in readers for item in [read(view, findings)] if item is not None]
    _say_idle(view, {item.gpu.split("-")[0] for item in seen}, findings)
    if not seen:
        if not (view.exists("/sys/class") or view.tools_known):
            findings.found("gpu", "there is no /sys/class to look at")
            return Gpus(None, None, [])
        findings.found("gpu", "no driver of a GPU that computes")
        findings.found("gpus", "none was found")
        return Gpus("none", 0, [])
    ranked = sorted(seen, key=lambda item: -item.count)
    if len(ranked) > 1:
        listed = ", ".join(f"{item.count} {item.gpu}" for item in ranked)
        if ranked[0].count == ranked[1].count:
            findings.found("gpu", f"GPUs of several vendors, none the most: {listed}")
            findings.note(f"GPUs of several vendors ({listed}): set gpu to the one to build for")
            return Gpus(None, None, seen)
        findings.note(f"GPUs of several vendors ({listed}): the most numerous were taken")
    best = ranked[0]
    models = ", ".join(best.models) or "model unknown"
    findings.found("gpu", f"driver {best.driver}: {models}")
    findings.found("gpus", f"devices of driver {best.driver}")
    return Gpus(best.gpu, best.count, seen)


def _models(names: list[str], kind: str, findings: Findings) -> list[str]:
    """Distinct models with their number; several on one node are said."""
    counted = Counter(name[:80] or "unknown" for name in names)
    models = [name if len(counted) == 1 else f"{n} x {name}" for name, n in counted.items()]
    if len(counted) > 1:
        findings.note(f"{kind} GPUs of more than one model: {', '.join(models)}")
    return models


def _nvidia(view: View, findings: Findings) -> Accelerator | None:
    names = []
    for address in view.names(f"{NVIDIA}/gpus"):
        text = view.text(f"{NVIDIA}/gpus/{address}/information") or ""
        match = re.search(r"^Model:\s*(.+?)\s*$", text, re.M)
        names.append(match[1] if match else "")
    output = view.ask("nvidia-smi", "-L")
    listed = re.findall(r"^GPU [0-9]+: (.+?)(?: \(UUID.*)?$", output.text if output else "", re.M)
    if output is not None and not output.ok:
        why = "did not answer" if output.timed_out else output.text.strip()
        findings.note(f"nvidia-smi is here and fails: {why}")
    elif output is not None and names and len(listed) != len(names):
        findings.note(f"nvidia-smi lists {len(listed)} GPUs, {NVIDIA}/gpus {len(names)}")
    names = names or listed
    if not names:
        return None
    version = re.search(r"Module.*?\s([0-9]+\.[0-9.]+)\s", view.text(f"{NVIDIA}/version") or "")
    driver = f"nvidia {version[1]}" if version else "nvidia"
    models = _models(names, "nvidia", findings)
    return Accelerator(gpu="nvidia", count=len(names), models=models, driver=driver)


def _amd(view: View, findings: Findings) -> Accelerator | None:
    names, apus = [], 0
    for node in view.names(KFD):
        text = view.text(f"{KFD}/{node}/properties") or ""
        fields = dict(re.findall(r"^(\w+) ([0-9]{1,19})$", text, re.M))
        version = int(fields.get("gfx_target_version", 0))
        if not version:
            continue  # a CPU is a node of this topology too
        apu = int(fields.get("device_id", 0)) == MI300A
        apus += apu
        names.append("MI300A" if apu else _gfx(version))
    if not names:
        return None
    if 0 < apus < len(names):
        findings.note(f"{apus} of {len(names)} AMD GPUs are MI300A: gpu says amd")
    models = _models(names, "amd", findings)
    kind = "amd-mi300a" if apus == len(names) else "amd"
    if "gfx90a" in models:
        findings.note("gfx90a: each MI250 or MI250X shows itself as two GPUs, counted as two")
    return Accelerator(gpu=kind, count=len(names), models=models, driver="amdgpu (kfd)")


def _gfx(version: int) -> str:
    """90010 → gfx90a: two digits each of minor and step, the last ones hexadecimal."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _intel(view: View, findings: Findings) -> Accelerator | None:
    names = []
    for card in _cards(view):
        driver = view.link(f"/sys/class/drm/{card}/device/driver")
        address = view.link(f"/sys/class/drm/{card}/device")
        # The GPU within an Intel CPU always has this address.
        if driver in ("xe", "i915") and address and not address.endswith(":00:02.0"):
            names.append(view.word(f"/sys/class/drm/{card}/device/device"))
    if not names:
        return None
    models = _models(names, "intel", findings)
    return Accelerator(gpu="intel", count=len(names), models=models, driver="xe or i915")


def _gaudi(view: View, findings: Findings) -> Accelerator | None:
    new = [name for name in view.names("/sys/class/accel") if name.startswith("accel")]
    cards = [
        name for name in new if view.link(f"/sys/class/accel/{name}/device/driver") == "habanalabs"
    ]
    if not cards:
        cards = [
            name for name in view.names("/sys/class/habanalabs") if re.fullmatch(r"hl[0-9]+", name)
        ]
    if not cards:
        return None
    return Accelerator(gpu="gaudi", count=len(cards), models=[], driver="habanalabs")


def _cards(view: View) -> list[str]:
    return [name for name in view.names("/sys/class/drm") if re.fullmatch(r"card[0-9]+", name)]


def _say_idle(view: View, working: set[str], findings: Findings) -> None:
    """Say which compute GPUs are on the bus without the driver that programs need."""
    for card in _cards(view):
        vendor = VENDORS.get(view.word(f"/sys/class/drm/{card}/device/vendor"), "")
        if vendor and vendor not in working:
            driver = view.link(f"/sys/class/drm/{card}/device/driver") or "none"
            findings.note(
                f"a GPU of {vendor} is there (/sys/class/drm/{card}, driver {driver}) and is "
                "not counted: its vendor's driver is not loaded, so no program can use it"
            )
