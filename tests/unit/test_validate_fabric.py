"""Provider and transports, read from what MPICH 4.0.2 and UCX 1.13.1 printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from fabric import (  # noqa: E402
    fault,
    little_locked,
    other_transport,
    over_tcp,
    providers,
    transports,
    unplanned,
)

OFI = (ROOT / "data" / "validate" / "summary_ofi.txt").read_text()
UCX = (ROOT / "data" / "validate" / "summary_ucx.txt").read_text()


def test_the_provider_in_use_and_its_parts():
    assert providers(OFI) == {"tcp;ofi_rxm", "tcp", "ofi_rxm"}


def test_a_candidate_is_not_the_provider_in_use():
    considered = "\n".join(line for line in OFI.splitlines() if line.startswith("provider:"))
    assert "provider: tcp" in considered
    assert providers(considered) == set()


OPEN_MPI = """\
[n1:18469] ompi/mca/mtl/ofi/mtl_ofi_component.c:583: mtl:ofi:provider_include = "tcp;ofi_rxm"
[n1:18467] ompi/mca/mtl/ofi/mtl_ofi_component.c:735: fi_getinfo(): Success
[n1:18467] ompi/mca/mtl/ofi/mtl_ofi_component.c:337: mtl:ofi:prov: tcp;ofi_rxm
"""


def test_open_mpi_names_the_provider_of_its_mtl():
    """Printed by Open MPI 4.1.4 of Debian 12 with opal_common_ofi_verbose=1."""
    assert providers(OPEN_MPI) == {"tcp;ofi_rxm", "tcp", "ofi_rxm"}
    wanted = {"provider": ["cxi"]}
    assert "the provider is ofi_rxm, tcp, tcp;ofi_rxm" in fault(OPEN_MPI, "mtl:ofi", wanted)
    assert "the provider is not named" in fault("", "mtl:ofi", wanted)
    assert fault(OPEN_MPI, "mtl:ofi", {"provider": ["tcp;ofi_rxm"]}) == ""


def test_the_transports_of_the_endpoints():
    assert transports(UCX) == {"self", "sysv", "posix", "cma"}


def test_each_says_nothing_of_the_other():
    assert providers(UCX) == set()
    assert transports(OFI) == set()


PLANNED = {"provider": [], "transports": ["rc_mlx5", "ud_verbs"], "memory": ["cuda_copy"]}


@pytest.mark.parametrize(
    ("lanes", "wrong"),
    [
        ("rc_mlx5/mlx5_0:1 cuda_copy/cuda", ""),
        ("self/memory ud_verbs/mlx5_0:1 cuda_copy/cuda", ""),
        ("tcp/eth0 cuda_copy/cuda", "the transports is cuda_copy, tcp"),
        ("posix/memory cma/memory cuda_copy/cuda", "the transports is"),
        ("rc_mlx5/mlx5_0:1", "the memory is rc_mlx5"),
        ("", "the transports is not named"),
    ],
)
def test_fabric_and_gpu_are_asked_for_both(lanes: str, wrong: str) -> None:
    # UCX up to 1.14, and later ones
    for named in ("ep_cfg[1]:", "  ucp_context_0 inter-node cfg#8"):
        said = f"[1795260314.1] [vm:1:0] ucp_worker.c:1855 UCX  INFO  {named} tag({lanes})"
        found = fault(said, "ch4:ucx", PLANNED)
        assert (wrong in found) if wrong else not found
        assert fault(said, "ch3:mrail", PLANNED) == ""


def test_another_provider_is_told() -> None:
    assert "planned was cxi" in fault(OFI, "ch4:ofi", {"provider": ["cxi"]})
    assert fault(OFI, "ch4:ofi", {"provider": ["tcp"]}) == ""


def carried(nodes: str, sent: int) -> str:
    return "".join(
        f"rank {rank} on {node}: {sent} of 33554432 bytes over TCP\n"
        for rank, node in enumerate(nodes)
    )


@pytest.mark.parametrize(
    ("nodes", "sent", "planned", "wrong"),
    [
        ("aa", 0, {}, ""),
        ("aa", 4096, {}, ""),
        # what MPICH 4.0.2 printed with MPIR_CVAR_NOLOCAL=1
        ("aa", 33564772, {}, "between ranks of one node go over TCP: the kernel counted 33564772"),
        ("aa", 33564772, {"provider": ["tcp"]}, "between ranks of one node"),
        ("ab", 33564772, {"provider": ["cxi"]}, "between two nodes, whose fabric is another,"),
        ("ab", 33564772, {"transports": ["rc_mlx5"]}, "between two nodes"),
        ("ab", 33564772, {}, "between two nodes"),
        ("ab", 33564772, {"provider": ["tcp"]}, ""),
        ("ab", 33564772, {"transports": ["tcp"]}, ""),
        ("", 0, {}, "no rank said"),
    ],
)
def test_the_kernel_counts_what_goes_over_tcp(
    nodes: str, sent: int, planned: dict[str, list[str]], wrong: str
) -> None:
    found = over_tcp(carried(nodes, sent), planned)
    assert (wrong in found) if wrong else not found


def test_two_nodes_of_a_scheduler_may_be_one_host() -> None:
    said = carried("aa", 33564704)
    assert over_tcp(said, {"provider": ["tcp"]}, nodes=2) == ""
    assert "between two nodes" in over_tcp(said, {"provider": ["cxi"]}, nodes=2)


SET = "set FI_PROVIDER=tcp\nset UCX_LOG_LEVEL=info\n"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (SET, ""),
        (SET + "set UCX_TLS=tcp,self\n", "UCX_TLS is tcp,self, planned was not to set it"),
        (SET.replace("=tcp", "=udp"), "FI_PROVIDER is udp, planned was tcp"),
        ("", "FI_PROVIDER is not set, planned was tcp"),
    ],
)
def test_a_variable_that_nobody_planned_is_told(said: str, wrong: str) -> None:
    assert unplanned(said, {"FI_PROVIDER": "tcp"}, {"UCX_LOG_LEVEL"}) == wrong


def test_a_folder_of_links_holds_the_library_that_they_name(tmp_path: Path) -> None:
    """As Spack's views have them; the kernel names the file itself."""
    view = tmp_path / "view" / "lib64"
    for folder in (view, tmp_path / "store", tmp_path / "other"):
        folder.mkdir(parents=True)
    own, other = (tmp_path / name / "libfabric.so.1.27.0" for name in ("store", "other"))
    own.touch()
    other.touch()
    (view / "libfabric.so.1").symlink_to(own)
    mpi = {
        "module": "mvapich/4.0-ofi",
        "transport": {"library": "libfabric", "provision": "external"},
        "believe": {"beneath": str(view.parent)},
    }
    assert other_transport([str(own), str(view / "libfabric.so.1")], mpi, "/apps") == ""
    assert str(other) in other_transport([str(own), str(other)], mpi, "/apps")


@pytest.mark.parametrize(
    ("said", "fabric", "wrong"),
    [
        ("a process may lock 65536 bytes of memory\n", "infiniband", "may lock 64 kB"),
        ("a process may lock 8388608 bytes of memory\n", "slingshot-11", "may lock 8192 kB"),
        ("a process may lock 67108864 bytes of memory\n", "infiniband", ""),
        ("a process may lock 65536 bytes of memory\n", "tcp", ""),
        ("a process may lock 65536 bytes of memory\n", "shm", ""),
        ("rank 0 on n1: 0 of 33554432 bytes over TCP\n", "infiniband", ""),
    ],
)
def test_little_memory_to_lock(said, fabric, wrong):
    found = little_locked(said, fabric)
    assert wrong in found and bool(found) == bool(wrong)
