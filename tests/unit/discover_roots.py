"""Roots for the tests of discovery: those of tests/data/discover, and ones made on the spot."""

from __future__ import annotations

import json
from pathlib import Path

from mvstack.discover import Machine, system_yaml
from mvstack.discover.view import capture_name
from mvstack.model.system import System
from mvstack.model.yamlfile import parse_yaml

DATA = Path(__file__).parent.parent / "data" / "discover"
VERBS = "/sys/class/infiniband"


def make(root: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Path:
    """``files`` and ``links`` (path → text or target) below ``root``."""
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for path, target in (links or {}).items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
    return root


def tool(root: Path, name: str, *args: str, text: str, status: str = "") -> None:
    """The captured output of a tool."""
    file = f"/mvstack-capture/{capture_name(name, args)}"
    make(root, {file: text, f"/mvstack-capture/which-{name}.txt": f"/usr/bin/{name}\n"})
    if status:
        make(root, {f"{file}.status": status})


def port(
    root: Path,
    device: str,
    driver: str = "mlx5_core",
    layer: str = "InfiniBand",
    state: str = "4: ACTIVE",
    rate: str = "100 Gb/sec (4X EDR)",
    node: str = "1: CA",
) -> None:
    """A network adapter with one port."""
    base = f"{VERBS}/{device}"
    make(
        root,
        {
            f"{base}/node_type": node,
            f"{base}/ports/1/link_layer": f"{layer}\n",
            f"{base}/ports/1/state": f"{state}\n",
            f"{base}/ports/1/rate": f"{rate}\n",
        },
        {f"{base}/device/driver": f"../../../../bus/pci/drivers/{driver}"} if driver else {},
    )


def data_of(machine: Machine) -> dict:
    """The system file of ``machine`` as data; also that the machine can be written as JSON."""
    json.loads(machine.model_dump_json())
    return parse_yaml(system_yaml(machine), Path("found.yaml")).data


def system_of(machine: Machine) -> System:
    """The system file of ``machine``, validated by the model of system files."""
    return System.model_validate(data_of(machine))
