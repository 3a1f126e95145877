"""The ports of this machine's network adapters, as /sys tells of them."""

from __future__ import annotations

import re

from mvstack.discover.machine import Findings, Port
from mvstack.discover.view import View

NICS = {
    "mlx5_core": "mlx5",
    "mlx4_core": "mlx4",
    "hfi1": "hfi1",
    "ib_qib": "qib",
    "efa": "efa",
    "bnxt_en": "broadcom",
    "irdma": "irdma",
    "ice": "irdma",
    "i40e": "irdma",
    "i40iw": "irdma",
    "cxgb4": "cxgb4",
    "qede": "qedr",
    "hns3": "hns",
    "mana": "mana",
}
"""Kernel driver of the PCI device → the nic's word in a system file."""

SOFTWARE = ("rxe", "siw")
"""RDMA in software over any Ethernet: no fabric to build an MPI for."""

VERBS = "/sys/class/infiniband"
CXI = "/sys/class/cxi"


def read_ports(view: View, findings: Findings) -> list[Port]:
    """Every port below /sys/class/infiniband and /sys/class/cxi, and Aries' device."""
    ports = [port for device in view.names(VERBS) for port in _verbs_ports(view, device, findings)]
    ports += [_cxi_port(view, device) for device in view.names(CXI) if device.startswith("cxi")]
    if view.names("/sys/class/gni") or view.exists("/dev/kgni0"):
        ports.append(Port(device="kgni0", fabric="aries", nic="gni", driver="kgni", active=None))
    return ports


def _verbs_ports(view: View, device: str, findings: Findings) -> list[Port]:
    base = f"{VERBS}/{device}"
    driver = view.link(f"{base}/device/driver")
    nic = NICS.get(driver) or _nic_by_name(device)
    software = not driver and device.startswith(SOFTWARE)
    node_type = view.word(f"{base}/node_type")
    ports = []
    for number in view.names(f"{base}/ports"):
        folder = f"{base}/ports/{number}"
        layer = view.word(f"{folder}/link_layer")[:40]
        state = view.word(f"{folder}/state")
        fabric = None if software else _fabric(nic, layer, node_type)
        if fabric is None and not software:
            findings.note(
                f"network device {device} port {number}: driver {driver or 'unknown'}, "
                f"link_layer {layer or 'unknown'}: which fabric this is cannot be told"
            )
        ports.append(
            Port(
                device=device,
                port=number,
                fabric=fabric,
                nic="software" if software else nic,
                driver=driver,
                link_layer=layer,
                state=_state(state),
                active=_active(state),
                rate_gbps=_rate(view.word(f"{folder}/rate")),
            )
        )
    if not ports:
        findings.note(f"network device {device} is there and shows no port")
        ports.append(Port(device=device, nic=nic, driver=driver, active=False))
    if software:
        findings.note(f"{device} is RDMA in software ({nic or 'rxe or siw'}): not counted")
    return ports


def _nic_by_name(device: str) -> str | None:
    """The nic by a device's usual name, where a captured root has no driver link."""
    usual = (
        ("mlx5", "mlx5"),
        ("mlx4", "mlx4"),
        ("hfi1", "hfi1"),
        ("qib", "qib"),
        ("efa", "efa"),
        ("bnxt_re", "broadcom"),
        ("irdma", "irdma"),
        ("cxgb4", "cxgb4"),
    )
    return next((nic for start, nic in usual if device.startswith(start)), None)


def _fabric(nic: str | None, layer: str, node_type: str) -> str | None:
    """The fabric's word; the kernel's node_type tells iWARP (RNIC) from RoCE (CA)."""
    if nic == "efa":
        return "efa"
    if nic == "hfi1":
        return "omni-path"
    if layer == "InfiniBand":
        return "infiniband"
    if layer == "Ethernet":
        if "RNIC" in node_type or nic == "cxgb4":
            return "iwarp"
        return "roce"
    return None


def _state(text: str) -> str:
    """``4: ACTIVE`` → ACTIVE."""
    return text.rpartition(":")[2].strip()[:40]


def _active(text: str) -> bool | None:
    return _state(text).upper() == "ACTIVE" if text else None


def _rate(text: str) -> float | None:
    """Gbit/s of ``100 Gb/sec (4X EDR)``."""
    match = re.match(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec", text)
    return float(match[1]) if match else None


def _cxi_port(view: View, device: str) -> Port:
    """A Cassini adapter; its link is that of the Ethernet interface it belongs to (hsn0)."""
    nets = view.names(f"{CXI}/{device}/device/net")
    net = nets[0] if nets else f"hsn{device.removeprefix('cxi')}"
    state = view.word(f"/sys/class/net/{net}/operstate")[:40]
    speed = view.word(f"/sys/class/net/{net}/speed")
    rate = int(speed) / 1000 if re.fullmatch(r"[0-9]{1,8}", speed) else None
    return Port(
        device=device,
        port="",
        fabric="slingshot-11",
        nic="cxi",
        driver=view.link(f"{CXI}/{device}/device/driver"),
        link_layer="Ethernet",
        state=state.upper(),
        active=None if not state or state == "unknown" else state == "up",
        rate_gbps=rate,
    )
