"""Azure's names of RDMA devices, on made-up /sys trees; `rdma` is a script that renames in them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mvstack.image.packer import TEMPLATES

PROGRAM = TEMPLATES / "files/usr/libexec/mvapich-stack/azure-rdma-names"
# dev set OLD name NEW: the kernel refuses a name that is taken
RDMA = """#!/bin/bash
[[ "$1 $2 $4" == 'dev set name' && -e $TREE/$3 && ! -e $TREE/$5 ]] || exit 1
mv "$TREE/$3" "$TREE/$5"
"""


@pytest.mark.parametrize(
    ("devices", "wanted"),
    [
        # HBv3 with accelerated networking: Ethernet came first in one start, second in another
        (
            [("mlx5_0", "0101:00:02.0", "Ethernet"), ("mlx5_1", "b28c:00:02.0", "InfiniBand")],
            {"mlx5_an0": "0101:00:02.0", "mlx5_ib0": "b28c:00:02.0"},
        ),
        (
            [("mlx5_1", "0101:00:02.0", "Ethernet"), ("mlx5_0", "b28c:00:02.0", "InfiniBand")],
            {"mlx5_an0": "0101:00:02.0", "mlx5_ib0": "b28c:00:02.0"},
        ),
        # NDv5: eight of InfiniBand, by PCI address, whatever the kernel's order was
        (
            [(f"mlx5_{7 - n}", f"010{n + 1}:00:00.0", "InfiniBand") for n in range(8)],
            {f"mlx5_ib{n}": f"010{n + 1}:00:00.0" for n in range(8)},
        ),
        ([], {}),
    ],
)
def test_names_follow_kind_and_pci_address(
    tmp_path: Path, devices: list[tuple[str, str, str]], wanted: dict[str, str]
) -> None:
    tree, bus = tmp_path / "infiniband", tmp_path / "bus"
    tree.mkdir()
    for name, address, layer in devices:
        (bus / address).mkdir(parents=True)
        (tree / name / "ports/1").mkdir(parents=True)
        (tree / name / "ports/1/link_layer").write_text(f"{layer}\n")
        (tree / name / "device").symlink_to(bus / address)
    (tmp_path / "rdma").write_text(RDMA)
    (tmp_path / "rdma").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TREE": str(tree)}
    for _ in range(2):  # the second start finds the names that the first gave
        done = subprocess.run(
            [PROGRAM, tree], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found = {place.name: (place / "device").resolve().name for place in tree.iterdir()}
        assert found == wanted
