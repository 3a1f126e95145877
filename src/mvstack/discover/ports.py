"""The ports of this machine's network adapters, as /sys tells of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mvstack.discover.machine import Findings
from mvstack.discover.view import View
from mvstack.model.policy import FabricRow, Seen


@dataclass(frozen=True)
class Adapter:
    """A nic's word in a system file, the kernel's drivers for it, and how its devices are named."""

    nic: str
    drivers: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Port:
    """A port of a network adapter; ``active`` is None when that cannot be seen."""

    device: str
    port: str = ""
    fabric: str | None = None
    nic: str | None = None
    driver: str = ""
    link_layer: str = ""
    state: str = ""
    active: bool | None = None
    rate_gbps: float | None = None


ADAPTERS = (
    Adapter("mlx5", ("mlx5_core",), ("mlx5",)),
    Adapter("mlx4", ("mlx4_core",), ("mlx4",)),
    Adapter("hfi1", ("hfi1",), ("hfi1",)),
    Adapter("qib", ("ib_qib",), ("qib",)),
    Adapter("efa", ("efa",), ("efa",)),
    Adapter("broadcom", ("bnxt_en",), ("bnxt_re",)),
    Adapter("irdma", ("irdma", "ice", "i40e", "i40iw"), ("irdma",)),
    Adapter("cxgb4", ("cxgb4",), ("cxgb4",)),
    Adapter("qedr", ("qede",)),
    Adapter("hns", ("hns3",)),
    Adapter("mana", ("mana",)),
)


SOFTWARE = ("rxe", "siw")
"""RDMA in software over any Ethernet: no fabric to build an MPI for."""

VERBS = "/sys/class/infiniband"
CXI = "/sys/class/cxi"


def read_ports(view: View, fabrics: dict[str, FabricRow], findings: Findings) -> list[Port]:
    """Every port below /sys/class/infiniband and /sys/class/cxi, and Aries' device."""
    ports = []
    for device in view.names(VERBS):
        ports += _verbs_ports(view, device, fabrics, findings)
    ports += [_cxi_port(view, device) for device in view.names(CXI) if device.startswith("cxi")]
    if view.names("/sys/class/gni") or view.exists("/dev/kgni0"):
        ports.append(Port(device="kgni0", fabric="aries", nic="gni", driver="kgni", active=None))
    return ports


def _verbs_ports(
    view: View, device: str, fabrics: dict[str, FabricRow], findings: Findings
) -> list[Port]:
    base = f"{VERBS}/{device}"
    driver = view.link(f"{base}/device/driver")
    nic = _nic(driver, device)
    software = not driver and device.startswith(SOFTWARE)
    node_type = view.word(f"{base}/node_type")
    ports = []
    for number in view.names(f"{base}/ports"):
        folder = f"{base}/ports/{number}"
        layer = view.word(f"{folder}/link_layer")[:40]
        state = view.word(f"{folder}/state")
        shown = Seen.model_construct(driver=driver, nic=nic, link_layer=layer, node_type=node_type)
        fabric = None if software else _fabric(fabrics, shown)
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


def _nic(driver: str, device: str) -> str | None:
    """The nic by its driver; by its device's usual name where no driver is shown."""
    known = next((one.nic for one in ADAPTERS if driver in one.drivers), None)
    named = (one.nic for one in ADAPTERS if one.names and device.startswith(one.names))
    return known or next(named, None)


def _fabric(fabrics: dict[str, FabricRow], port: Seen) -> str | None:
    """The fabric of the policy's row that fits; nic and driver tell more than the link layer."""
    fits = [
        (bool(seen.nic or seen.driver), len(seen.model_fields_set), -place, name)
        for place, (name, row) in enumerate(fabrics.items())
        for seen in row.seen
        if seen.nic in (None, port.nic)
        and seen.driver in (None, port.driver)
        and seen.link_layer in (None, port.link_layer)
        and (seen.node_type or "") in (port.node_type or "")
    ]
    return max(fits)[-1] if fits else None


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
