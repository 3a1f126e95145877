"""The ports of this machine's network adapters, as /sys tells of them."""

import re
from dataclasses import dataclass

from mvstack.discover.machine import Machine
from mvstack.discover.view import View
from mvstack.model.policy import FabricRow, Policy, Seen


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

    @property
    def name(self) -> str:
        """What a note calls it: ``port 1``; a device without numbered ports has its link."""
        return f"port {self.port}" if self.port else "link"

    def rate(self, otherwise: str) -> str:
        """Its rate with the unit; ``otherwise`` where it is not known."""
        return f"{self.rate_gbps:g} Gbit/s" if self.rate_gbps else otherwise


NAMES = ("mlx5", "mlx4", "hfi1", "qib", "efa", "bnxt_re", "irdma", "cxgb4")
"""How devices are named that say no driver: like the nic, but for Broadcom's."""

SOFTWARE = ("rxe", "siw")
"""RDMA in software over any Ethernet: no fabric to build an MPI for."""

VERBS = "/sys/class/infiniband"
CXI = "/sys/class/cxi"


def read_ports(view: View, policy: Policy, machine: Machine) -> list[Port]:
    """Every port below /sys/class/infiniband and /sys/class/cxi, and Aries' device."""
    ports = []
    for device in view.names(VERBS):
        ports += _verbs_ports(view, device, policy, machine)
    ports += [_cxi_port(view, device) for device in view.names(CXI) if device.startswith("cxi")]
    if view.names("/sys/class/gni") or view.exists("/dev/kgni0"):
        ports.append(Port(device="kgni0", fabric="aries", nic="gni", driver="kgni"))
    return ports


def _verbs_ports(view: View, device: str, policy: Policy, machine: Machine) -> list[Port]:
    base = f"{VERBS}/{device}"
    driver = view.link(f"{base}/device/driver")
    software = not driver and device.startswith(SOFTWARE)
    # by its driver; by its device's usual name where no driver is shown
    named = next((name for name in NAMES if device.startswith(name)), None)
    nic = policy.drivers.get(driver) or ("broadcom" if named == "bnxt_re" else named)
    nic = "software" if software else nic
    node_type = view.word(f"{base}/node_type")
    ports = []
    for number in view.names(f"{base}/ports"):
        folder = f"{base}/ports/{number}"
        layer = view.word(f"{folder}/link_layer")[:40]
        state = view.word(f"{folder}/state").rpartition(":")[2].strip()[:40]  # 4: ACTIVE
        rate = re.match(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec", view.word(f"{folder}/rate"))
        shown = Seen.model_construct(driver=driver, nic=nic, link_layer=layer, node_type=node_type)
        fabric = None if software else _fabric(policy.fabrics, shown)
        if fabric is None and not software:
            machine.note(
                f"network device {device} port {number}: driver {driver or 'unknown'}, "
                f"link_layer {layer or 'unknown'}: which fabric this is cannot be told"
            )
        ports.append(
            Port(
                device=device,
                port=number,
                fabric=fabric,
                nic=nic,
                driver=driver,
                link_layer=layer,
                state=state,
                active=state.upper() == "ACTIVE" if state else None,
                rate_gbps=float(rate[1]) if rate else None,
            )
        )
    if not ports:
        machine.note(f"network device {device} is there and shows no port")
        ports.append(Port(device=device, nic=nic, driver=driver, active=False))
    if software:
        machine.note(f"{device} is RDMA in software (rxe or siw): not counted")
    return ports


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


def _cxi_port(view: View, device: str) -> Port:
    """A Cassini adapter; its link is that of the Ethernet interface it belongs to (hsn0)."""
    nets = view.names(f"{CXI}/{device}/device/net")
    net = nets[0] if nets else f"hsn{device.removeprefix('cxi')}"
    state = view.word(f"/sys/class/net/{net}/operstate")[:40]
    speed = view.word(f"/sys/class/net/{net}/speed")
    rate = int(speed) / 1000 if re.fullmatch(r"[0-9]{1,8}", speed) else None
    return Port(
        device=device,
        fabric="slingshot-11",
        nic="cxi",
        driver=view.link(f"{CXI}/{device}/device/driver"),
        link_layer="Ethernet",
        state=state.upper(),
        active=None if not state or state == "unknown" else state == "up",
        rate_gbps=rate,
    )
