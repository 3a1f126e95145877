"""Machines for the tests of discovery: those of tests/data/discover, and ones made here."""

from __future__ import annotations

import json
import shlex
from functools import cache
from pathlib import Path

from mvstack.discover import Machine, system_yaml
from mvstack.discover.capture import TIMED_OUT, Capture, read_capture
from mvstack.model.system import System
from mvstack.model.yamlfile import parse_yaml

DATA = Path(__file__).parent.parent / "data" / "discover"
MACHINES = sorted(path.stem for path in DATA.glob("*.yaml"))
VERBS = "/sys/class/infiniband"


def kept(name: str) -> Capture:
    """A machine of tests/data/discover, to be changed."""
    return _read(name).model_copy(deep=True)


@cache
def _read(name: str) -> Capture:
    return read_capture(DATA / f"{name}.yaml")


def make(root: Capture, files: dict[str, str], links: dict[str, str] | None = None) -> Capture:
    """``root`` with more ``files`` and ``links`` (path → text or target)."""
    root.files.update(files)
    root.links.update(links or {})
    return root


def without(root: Capture, folder: str) -> Capture:
    """``root`` without a file, or a folder and what is in it."""
    gone = [
        path
        for path in (*root.files, *root.links, *root.there)
        if path == folder or path.startswith(f"{folder}/")
    ]
    for path in gone:
        root.files.pop(path, None)
        root.links.pop(path, None)
        root.there.discard(path)
    return root


def tool(root: Capture, *words: str, text: str, status: str = "") -> None:
    """A tool, and what it prints when it is asked."""
    root.tools[words[0]] = f"/usr/bin/{words[0]}"
    root.outputs[shlex.join(words)] = text
    if status:
        root.failed[shlex.join(words)] = TIMED_OUT if status == "timeout" else int(status)


def port(
    root: Capture,
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
