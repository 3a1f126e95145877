"""GPUs and accelerators that a program here can use, and those that it cannot."""

import re
from collections import Counter

from mvstack.discover.machine import Accelerator, Machine
from mvstack.discover.view import View

DRM = "/sys/class/drm"
KFD = "/sys/class/kfd/kfd/topology/nodes"
NVIDIA = "/proc/driver/nvidia"
MI300A = 0x74A0
"""PCI device of the MI300A (pci.ids: Aqua Vanjaram); the MI300X is 0x74a1, both are gfx942."""

CAPABILITY = "nvidia-smi --query-gpu=compute_cap --format=csv,noheader"
VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x1da3": "gaudi"}


def read_gpus(view: View, machine: Machine) -> None:
    """Look below /proc/driver/nvidia, /sys/class/{kfd,drm,accel,habanalabs} and at nvidia-smi."""
    found = [read(view, machine) for read in (_nvidia, _amd, _intel, _gaudi)]
    seen = machine.accelerators = [one for one in found if one is not None]
    # a GPU outside the device cgroup of a job is a node that may not be read; a CPU's may
    shut = any(path.startswith(KFD) for path in view.seen.denied)
    _say_idle(view, {*(one.gpu.split("-")[0] for one in seen), "amd" * shut}, machine)
    if not seen:
        if shut or not (view.exists("/sys/class") or view.tools_known):
            how = "GPUs of AMD are here, and this job may not read them: run it in a job with GPUs"
            machine.found("gpu", how if shut else "there is no /sys/class to look at")
            return
        machine.found("gpu", "no driver of a GPU that computes", "none")
        machine.found("gpus", "none was found", 0)
        return
    best, *others = sorted(seen, key=lambda one: -one.count)
    if others:
        listed = ", ".join(f"{one.count} {one.gpu}" for one in (best, *others))
        if best.count == others[0].count:
            machine.found("gpu", f"GPUs of several vendors, none the most: {listed}")
            machine.note(f"GPUs of several vendors ({listed}): set gpu to the one to build for")
            return
        machine.note(f"GPUs of several vendors ({listed}): the most numerous were taken")
    models = ", ".join(best.models) or "model unknown"
    machine.found("gpu", f"driver {best.driver}: {models}", best.gpu)
    machine.found("gpus", f"devices of driver {best.driver}", best.count)
    if best.arch:
        machine.found("gpu_arch", f"what compilers write for on {models}", best.arch)


def stage_buffers(machine: Machine) -> None:
    """On a single machine whose UCX knows no GPU, build the MPI for host memory alone."""
    known = {"nvidia": "+cuda", "amd": "+rocm", "amd-mi300a": "+rocm"}.get(machine.gpu or "", "")
    there = " ".join(one.variants for one in machine.externals if one.name == "ucx")
    if known and machine.fabric == "shm" and known not in there.split():
        how = f"no UCX {known} found; for GPU buffers name one (externals), delete this line"
        machine.found("gpu_buffers", how, "staged")


def _accelerator(
    gpu: str, names: list[str], archs: set[str], driver: str, machine: Machine
) -> Accelerator | None:
    """The GPUs whose models are called ``names``; several models on one node are said."""
    if not names:
        return None
    counted = Counter(name[:80] or "unknown" for name in names)
    models = [name if len(counted) == 1 else f"{n} x {name}" for name, n in counted.items()]
    if len(counted) > 1:
        kind = gpu.split("-")[0]
        machine.note(f"{kind} GPUs of more than one model: {', '.join(models)}")
    arch = archs.pop() if len(archs) == 1 else ""
    return Accelerator(gpu=gpu, count=len(names), models=models, arch=arch, driver=driver)


def _nvidia(view: View, machine: Machine) -> Accelerator | None:
    names = []
    for address in view.names(f"{NVIDIA}/gpus"):
        match = view.search(f"{NVIDIA}/gpus/{address}/information", r"^Model:\s*(.+?)\s*$")
        names.append(match[1] if match else "")
    output = view.ask("nvidia-smi -L")
    listed = re.findall(r"^GPU [0-9]+: (.+?)(?: \(UUID.*)?$", output.said if output else "", re.M)
    if output is not None and not output.ok:
        why = "did not answer" if output.timed_out else output.said.strip()
        machine.note(f"nvidia-smi is here and fails: {why}")
    elif output is not None and names and len(listed) != len(names):
        machine.note(f"nvidia-smi lists {len(listed)} GPUs, {NVIDIA}/gpus {len(names)}")
    version = view.search(f"{NVIDIA}/version", r"Module.*?\s([0-9]+\.[0-9.]+)\s")
    driver = f"nvidia {version[1]}" if version else "nvidia"
    asked = view.ask(CAPABILITY)
    numbers = re.findall(r"^(\d+)\.(\d)\s*$", asked.said if asked and asked.ok else "", re.M)
    archs = {f"sm_{major}{minor}" for major, minor in numbers}
    return _accelerator("nvidia", names or listed, archs, driver, machine)


def _amd(view: View, machine: Machine) -> Accelerator | None:
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
    if 0 < apus < len(names):
        machine.note(f"{apus} of {len(names)} AMD GPUs are MI300A: gpu says amd")
    if "gfx90a" in names:
        machine.note("gfx90a: each MI250 or MI250X shows itself as two GPUs, counted as two")
    kind = "amd-mi300a" if apus == len(names) else "amd"
    archs = {"gfx942" if one == "MI300A" else one for one in names}
    return _accelerator(kind, names, archs, "amdgpu (kfd)", machine)


def _gfx(version: int) -> str:
    """90010 → gfx90a: two digits each of minor and step, the last ones hexadecimal."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _intel(view: View, machine: Machine) -> Accelerator | None:
    names = []
    for card in _cards(view):
        driver, address = view.link(f"{card}/device/driver"), view.link(f"{card}/device")
        # The GPU within an Intel CPU always has this address.
        if driver in ("xe", "i915") and address and not address.endswith(":00:02.0"):
            names.append(view.word(f"{card}/device/device"))
    return _accelerator("intel", names, set(), "xe or i915", machine)


def _gaudi(view: View, _: Machine) -> Accelerator | None:
    new = _cards(view, "/sys/class/accel", r"accel.*")
    cards = [card for card in new if view.link(f"{card}/device/driver") == "habanalabs"]
    cards = cards or _cards(view, "/sys/class/habanalabs", r"hl[0-9]+")
    return Accelerator(gpu="gaudi", count=len(cards), driver="habanalabs") if cards else None


def _cards(view: View, folder: str = DRM, pattern: str = r"card[0-9]+") -> list[str]:
    return [f"{folder}/{name}" for name in view.names(folder) if re.fullmatch(pattern, name)]


def _say_idle(view: View, working: set[str], machine: Machine) -> None:
    """Say which compute GPUs are on the bus without the driver that programs need."""
    for card in _cards(view):
        vendor = VENDORS.get(view.word(f"{card}/device/vendor"), "")
        if vendor and vendor not in working:
            driver = view.link(f"{card}/device/driver") or "none"
            why = "not counted: its vendor's driver is not loaded, so no program can use it"
            machine.note(f"a GPU of {vendor} is there ({card}, driver {driver}) and is {why}")
