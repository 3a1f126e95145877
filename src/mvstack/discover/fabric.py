"""Which of the networks of this machine its MPI should use."""

from __future__ import annotations

from dataclasses import dataclass

from mvstack.discover.machine import Findings
from mvstack.discover.ports import Port
from mvstack.discover.view import View


@dataclass(frozen=True)
class Choice:
    """The fabric's and the nic's word; both None when nothing could be looked at."""

    fabric: str | None
    nic: str | None


def choose_fabric(
    view: View,
    ports: list[Port],
    order: list[str],
    scheduler: str | None,
    hypervisor: str,
    findings: Findings,
) -> Choice:
    """The fastest active fabric; without one, shm on a machine alone and tcp in a cluster.

    Of active ports of one rate the one whose fabric stands first in ``order`` is taken.
    """
    for port in ports:
        if port.active is False and port.fabric is not None:
            findings.note(
                f"{port.fabric} device {port.device} is not counted: {_port(port)} is "
                f"{port.state or 'not active'}"
            )
    able = [port for port in ports if port.fabric and port.active is not False]
    able = [port for port in able if not _azure_ethernet(port, hypervisor, findings)]
    if not able:
        return _without(view, ports, scheduler, findings)
    best = max(
        able,
        key=lambda port: (
            port.active is True,
            port.rate_gbps or 0.0,
            -order.index(str(port.fabric)) if port.fabric in order else -len(order),
        ),
    )
    _say_others(best, able, findings)
    _say_doubts(view, best, findings)
    rate = f", {best.rate_gbps:g} Gbit/s" if best.rate_gbps else ", rate unknown"
    state = best.state or "state unknown"
    alike = sum(port.fabric == best.fabric for port in able)
    many = f"; {alike} ports of this fabric" if alike > 1 else ""
    how = f"{best.device} {_port(best)}: {best.link_layer} {state}{rate}{many}"
    findings.found("fabric", how)
    findings.found("nic", f"driver {best.driver or 'unknown'} of {best.device}")
    return Choice(best.fabric, best.nic)


def _without(view: View, ports: list[Port], scheduler: str | None, findings: Findings) -> Choice:
    if not ports and not view.exists("/sys/class"):
        findings.found("fabric", "there is no /sys/class to look at")
        return Choice(None, None)
    if scheduler is None:
        findings.found("fabric", "no network adapter for MPI; no telling whether a cluster")
        return Choice(None, None)
    seen = "no active network adapter for MPI" if ports else "no network adapter for MPI in /sys"
    if scheduler == "none":
        findings.found("fabric", f"{seen}, no scheduler: one machine alone, shared memory")
        return Choice("shm", None)
    findings.found("fabric", f"{seen}, scheduler {scheduler}: several nodes over TCP")
    if ports:
        findings.note("no port is active, so the fabric is tcp: look at the adapters")
    return Choice("tcp", None)


def _azure_ethernet(port: Port, hypervisor: str, findings: Findings) -> bool:
    """Azure's accelerated networking shows an mlx5 or mana Ethernet port that carries no RDMA."""
    azure = hypervisor.startswith("Microsoft") and port.fabric == "roce"
    if azure:
        findings.note(
            f"{port.device} is an Ethernet port of a Microsoft virtual machine (accelerated "
            "networking): not counted as roce"
        )
    return azure


def _say_others(best: Port, able: list[Port], findings: Findings) -> None:
    others = sorted({str(port.fabric) for port in able if port.fabric != best.fabric})
    if not others:
        return
    seen = "; ".join(
        f"{port.device} {port.fabric} "
        + (f"{port.rate_gbps:g} Gbit/s" if port.rate_gbps else "of unknown rate")
        for port in able
        if port.fabric != best.fabric
    )
    findings.note(
        f"more than one fabric: {best.fabric} ({best.device}) was chosen as the fastest that is "
        f"active; also there: {seen}"
    )


def _say_doubts(view: View, best: Port, findings: Findings) -> None:
    if best.active is None:
        findings.note(f"whether {best.device} has a link cannot be seen: taken as active")
    if best.fabric == "roce" and best.nic == "mlx5" and view.exists("/opt/cray/pe"):
        findings.note(
            "mlx5 over Ethernet and /opt/cray/pe: this may be Slingshot 10; if it is, "
            "set fabric: slingshot-10"
        )
    elif best.fabric in ("roce", "iwarp"):
        findings.note(
            f"{best.device} can carry {best.fabric}; whether the Ethernet between the nodes is set "
            "up for it (lossless, routed) cannot be seen here: set fabric: tcp if it is not"
        )
    if best.nic == "irdma":
        findings.note("an Intel Ethernet adapter: to use its psm3 provider, set fabric: psm3")


def _port(port: Port) -> str:
    return f"port {port.port}" if port.port else "link"
