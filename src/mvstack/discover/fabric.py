"""Which of the networks of this machine its MPI should use."""

from mvstack.discover.machine import Machine
from mvstack.discover.ports import Port
from mvstack.discover.view import View


def choose_fabric(view: View, ports: list[Port], order: list[str], machine: Machine) -> None:
    """The fastest active fabric; without one, shm on a machine alone and tcp in a cluster.

    Of active ports of one rate the one whose fabric stands first in ``order`` is taken.
    """
    for port in ports:
        if port.active is False and port.fabric is not None:
            machine.note(
                f"{port.fabric} device {port.device} is not counted: {port.name} is "
                f"{port.state or 'not active'}"
            )
    able = [port for port in ports if port.fabric and port.active is not False]
    able = [port for port in able if not _azure_ethernet(port, machine)]
    if not able:
        _without(view, ports, machine)
        return
    best = max(
        able,
        key=lambda port: (
            port.active is True,
            port.rate_gbps or 0.0,
            -order.index(str(port.fabric)) if port.fabric in order else -len(order),
        ),
    )
    others = [port for port in able if port.fabric != best.fabric]
    if others:
        seen = "; ".join(
            f"{one.device} {one.fabric} {one.rate('of unknown rate')}" for one in others
        )
        machine.note(
            f"more than one fabric: {best.fabric} ({best.device}) was chosen as the fastest that "
            f"is active; also there: {seen}"
        )
    _say_doubts(view, best, machine)
    alike = len(able) - len(others)
    many = f"; {alike} ports of this fabric" if alike > 1 else ""
    state = f"{best.link_layer} {best.state or 'state unknown'}, {best.rate('rate unknown')}"
    machine.found("fabric", f"{best.device} {best.name}: {state}{many}", best.fabric)
    machine.found("nic", f"driver {best.driver or 'unknown'} of {best.device}", best.nic)


def _without(view: View, ports: list[Port], machine: Machine) -> None:
    scheduler = machine.scheduler
    seen = "no active network adapter for MPI" if ports else "no network adapter for MPI in /sys"
    if not ports and not view.exists("/sys/class"):
        machine.found("fabric", "there is no /sys/class to look at")
    elif scheduler is None:
        machine.found("fabric", "no network adapter for MPI; no telling whether a cluster")
    elif scheduler == "none":
        machine.found("fabric", f"{seen}, no scheduler: one machine alone, shared memory", "shm")
    else:
        machine.found("fabric", f"{seen}, scheduler {scheduler}: several nodes over TCP", "tcp")
        if ports:
            machine.note("no port is active, so the fabric is tcp: look at the adapters")


def _azure_ethernet(port: Port, machine: Machine) -> bool:
    """Azure's accelerated networking shows an mlx5 or mana Ethernet port that carries no RDMA."""
    azure = machine.hypervisor.startswith("Microsoft") and port.fabric == "roce"
    if azure:
        machine.note(
            f"{port.device} is an Ethernet port of a Microsoft virtual machine (accelerated "
            "networking): not counted as roce"
        )
    return azure


def _say_doubts(view: View, best: Port, machine: Machine) -> None:
    if best.active is None:
        machine.note(f"whether {best.device} has a link cannot be seen: taken as active")
    if best.fabric == "roce" and best.nic == "mlx5" and view.exists("/opt/cray/pe"):
        machine.note(
            "mlx5 over Ethernet and /opt/cray/pe: this may be Slingshot 10; if it is, "
            "set fabric: slingshot-10"
        )
    elif best.fabric in ("roce", "iwarp"):
        machine.note(
            f"{best.device} can carry {best.fabric}; whether the Ethernet between the nodes is set "
            "up for it (lossless, routed) cannot be seen here: set fabric: tcp if it is not"
        )
    if best.nic == "irdma":
        machine.note("an Intel Ethernet adapter: to use its psm3 provider, set fabric: psm3")
