"""What a machine's libraries were built with, beyond what works on the machine at hand."""

from __future__ import annotations

import pytest
from discover_roots import make, system_of, tool

from mvstack.discover import look, system_yaml
from mvstack.discover.capture import Capture
from mvstack.discover.libraries import (
    silent_providers,
    slurm_modules,
    ucx_variants,
)
from mvstack.discover.machine import Library, Machine

CONFIG = """#define UCX_CONFIG_H
#define ENABLE_MT                 1
#define HAVE_IB                   1
#define HAVE_MLX5_HW              1
#define HAVE_TL_DC                0
#define HAVE_TL_RC                1
"""
UCX = {
    "/usr/include/ucp/api/ucp.h": "",
    "/usr/lib64/pkgconfig/ucx.pc": "Version: 1.15.0\n",
    "/usr/lib64/ucx/libuct_cma.so.0": "",
    "/usr/lib64/ucx/libuct_cuda.so.0.0.0": "",
}


@pytest.fixture
def root() -> Capture:
    """A machine of which nothing is known, to be added to."""
    return Capture()


def external(machine: Machine, name: str) -> Library:
    return next(item for item in machine.externals if item.name == name)


def test_ucx_is_described_by_its_build_and_its_modules(root: Capture) -> None:
    make(root, UCX)
    tool(root, "ucx_info", "-d", text="#   Transport: self\n")
    tool(root, "ucx_info", "-b", text=CONFIG)
    machine = look(root)
    ucx = external(machine, "ucx")
    assert ucx.transports == ["self"]
    assert ucx.variants == "+verbs+rc+mlx5_dv+thread_multiple+cma+cuda"
    assert f'variants: "{ucx.variants}"' in system_yaml(machine)


def test_a_ucx_of_another_prefix_than_the_tool_is_not_described_by_it(root: Capture) -> None:
    make(root, {name.replace("/usr/", "/usr/local/"): text for name, text in UCX.items()})
    tool(root, "ucx_info", "-b", text=CONFIG)
    ucx = external(look(root), "ucx")
    assert (ucx.prefix, ucx.variants) == ("/usr/local", "")


def test_nothing_is_claimed_of_a_ucx_that_tells_nothing() -> None:
    assert ucx_variants("", []) == ""
    assert ucx_variants("#define HAVE_IB 0\n#define HAVE_TL_RC_EXTRA 1\n", ["libucs.so.0"]) == ""


def test_libfabric_has_providers_that_find_no_adapter_here(root: Capture) -> None:
    make(
        root,
        {"/usr/include/rdma/fabric.h": "", "/usr/lib64/pkgconfig/libfabric.pc": "Version: 1.22.0"},
    )
    tool(root, "fi_info", "-l", text="tcp:\n    version: 122.0\nshm:\n    version: 122.0\n")
    tool(
        root,
        "fi_info",
        "-e",
        text="# FI_VERBS_TX_SIZE: Integer\n# FI_TCP_PORT: Integer\n# FI_CXI_RX: String\n",
    )
    machine = look(root)
    libfabric = external(machine, "libfabric")
    assert libfabric.providers == ["tcp", "shm", "cxi", "verbs"]
    assert libfabric.idle == ["cxi", "verbs"]
    assert "no adapter here for cxi, verbs" in system_yaml(machine)


def test_a_provider_that_is_newer_than_we_are_is_told_and_left_out(root: Capture) -> None:
    make(root, {"/usr/include/rdma/fabric.h": ""})
    tool(root, "fi_info", "-l", text="tcp:\n    version: 122.0\nwarp9:\n    version: 122.0\n")
    machine = look(root)
    assert external(machine, "libfabric").providers == ["tcp"]
    assert "not known here: warp9" in system_yaml(machine)
    if not machine.problems():
        system_of(machine)


def test_a_library_without_a_header_of_its_own_is_known_by_pkg_configs_file(root: Capture) -> None:
    folder = "/usr/lib/x86_64-linux-gnu/pkgconfig"
    tool(root, "uname", "-m", text="x86_64\n")
    openblas = "libdir=/usr/lib\nversion=0.3.29\nName: openblas\nVersion: ${version}\n"
    headers = {"/usr/local/include/a.h": "", "/usr/include/fftw3.h": ""}
    make(root, {**headers, f"{folder}/openblas.pc": openblas})
    machine = look(root)
    assert [(one.name, one.version, one.prefix) for one in machine.externals] == [
        ("openblas", "0.3.29", "/usr")
    ]
    assert machine.notes == []


@pytest.mark.parametrize(
    ("variables", "listed", "also"),
    [
        ("# FI_PSM2_DELAY: Integer", [], ["psm2"]),
        ("# FI_PSM2_DELAY: Integer", ["psm2"], []),
        ("FI_VERBS_X: set", [], []),
        ("# FI_PSM_TIME: Integer", [], ["psm"]),
        ("", [], []),
    ],
)
def test_a_provider_is_known_by_its_variables(
    variables: str, listed: list[str], also: list[str]
) -> None:
    assert silent_providers(variables, listed) == also


def slurm_root(root: Capture) -> Capture:
    make(
        root,
        {
            "/usr/include/slurm/pmi2.h": "",
            "/usr/lib64/slurm/mpi_pmi2.so": "",
            "/usr/lib64/slurm/mpi_pmix.so": "",
            "/usr/lib64/slurm/select_cons_tres.so": "",
        },
    )
    tool(root, "srun", "--mpi=list", text="srun: error: no controller", status="1")
    tool(root, "sinfo", "--version", text="slurm 23.11.4\n")
    tool(root, "scontrol", "show", "config", text="scontrol: error: no answer", status="1")
    return root


def test_slurm_can_be_built_on_where_no_controller_answers(root: Capture) -> None:
    machine = look(slurm_root(root))
    assert machine.scheduler == "none"
    slurm = external(machine, "slurm")
    assert (slurm.version, slurm.prefix, slurm.mpi) == ("23.11.4", "/usr", ["pmi2", "pmix"])
    assert "no controller answers" in system_yaml(machine)


def test_slurms_plugins_are_found_where_debian_has_them() -> None:
    folders = {"/usr/lib/x86_64-linux-gnu/slurm-wlm": ["mpi_none.so", "mpi_pmi2.a", "mpi_pmi2.so"]}
    found = slurm_modules(lambda path: folders.get(path, []), "/usr", "x86_64-linux-gnu")
    assert found == ["none", "pmi2"]
    assert slurm_modules(lambda _: [], "/usr", "") == []


def test_slurms_header_is_not_taken_for_crays(root: Capture) -> None:
    make(root, {"/usr/include/pmi2.h": ""})
    assert [item.name for item in look(root).externals] == []


def test_a_system_file_for_spack(root: Capture) -> None:
    text = system_yaml(look(make(root, UCX)), builder="spack")
    assert "\nbuilder: spack " in text
    assert "\nbuilder: easybuild " in system_yaml(look(root))
