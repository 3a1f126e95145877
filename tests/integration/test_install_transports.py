"""A libfabric or UCX of the machine that cannot drive the fabric is refused before a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.install.flow import Request, install
from mvstack.install.local import as_seen
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.support.errors import InvalidInput
from mvstack.support.progress import Progress

SYSTEM = """
name: node
title: a node
site: a test
os: debian12
scheduler: none
source: a test
builder: easybuild
partitions:
  cpu:
    title: 2 cores
    cores: 2
    memory_gb: 8
    target: x86_64_v3
    fabric: {fabric}
    launcher: hydra
    compiler: {{name: gcc, version: 12.2.0}}
    mpi: {{product: mvapich, version: "4.0", device: "{device}", why: a test}}
    externals:
      {library}: {{version: "1.99", prefix: "{prefix}"}}
"""
FI_INFO = 'case "$1" in -l) printf "%s:\\n    version: 1.0\\n" tcp ofi_rxm {0} ;; esac'
UCX_INFO = """case "$1" in
-b) echo "#define ENABLE_MT 1"; echo "{0}" ;;
-d) echo "#      Transport: tcp"; echo "#      Transport: posix" ;;
esac"""


def written(folder: Path, fabric: str, device: str, tool: str, text: str) -> str:
    library = {"fi_info": "libfabric", "ucx_info": "ucx"}[tool]
    if text:
        (folder / "bin").mkdir()
        (folder / "bin" / tool).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / tool).chmod(0o755)
    words = {"fabric": fabric, "device": device, "library": library, "prefix": folder}
    return SYSTEM.format(**words)


def asked(folder: Path, *case: str) -> None:
    system = parse_system(written(folder, *case), folder / "node.yaml")
    make_plan(as_seen(system, "cpu", Progress()), "cpu", load_release(None), load_policy())


@pytest.mark.parametrize(
    ("fabric", "device", "tool", "text", "lacks"),
    [
        ("efa", "ch4:ofi", "fi_info", FI_INFO.format("sockets"), "efa"),
        ("omni-path", "ch4:ofi", "fi_info", FI_INFO.format("psm2"), "opx"),
        ("infiniband", "ch4:ucx", "ucx_info", UCX_INFO.format("no verbs"), "rc_mlx5"),
    ],
)
def test_what_it_lacks_is_named(
    tmp_path: Path, fabric: str, device: str, tool: str, text: str, lacks: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        asked(tmp_path, fabric, device, tool, text)
    assert f"{tmp_path}/node.yaml:" in str(refused.value)
    assert f"has no {lacks}" in str(refused.value)
    assert tool in str(refused.value)


@pytest.mark.parametrize(
    ("fabric", "device", "tool", "text"),
    [
        ("efa", "ch4:ofi", "fi_info", FI_INFO.format("efa")),
        ("omni-path", "ch4:ofi", "fi_info", FI_INFO.format("opx")),
        # a node that has no adapter shows no transport of it: how UCX was built tells
        (
            "infiniband",
            "ch4:ucx",
            "ucx_info",
            UCX_INFO.format("#define HAVE_IB 1\n#define HAVE_TL_RC 1"),
        ),
        ("infiniband", "ch4:ucx", "ucx_info", ""),  # nobody to ask
    ],
)
def test_what_it_has_is_enough(
    tmp_path: Path, fabric: str, device: str, tool: str, text: str
) -> None:
    asked(tmp_path, fabric, device, tool, text)


def test_install_asks_before_it_fetches_or_builds(tmp_path: Path) -> None:
    case = ("efa", "ch4:ofi", "fi_info", FI_INFO.format("sockets"))
    (tmp_path / "node.yaml").write_text(written(tmp_path, *case))
    here = Request(str(tmp_path / "node.yaml"), root=tmp_path / "root", prerequisites=False)
    with pytest.raises(InvalidInput, match="the libfabric here has no efa"):
        install(here, Progress())
    assert not (tmp_path / "root").exists()
