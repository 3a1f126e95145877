"""What is found on the machines of tests/data/discover, and that their files are valid."""

from __future__ import annotations

import re
from datetime import date

import pytest
from discover_roots import DATA, system_of

from mvstack.discover import look, system_yaml

KEYS = ("os", "target", "cores", "fabric", "nic", "gpu", "gpus", "scheduler", "launcher", "pmi")
EXPECTED = {
    "expanse-cpu": "rocky8 zen2 128 infiniband mlx5 none 0 slurm srun pmi2",
    "gpu-v100": "rocky8 cascadelake 40 infiniband mlx5 nvidia 4 slurm srun pmi2",
    "azure-hbv4": "almalinux8 zen4 176 infiniband mlx5 none 0 none hydra -",
    "aws-hpc7a": "ubuntu22.04 zen4 192 efa efa none 0 slurm srun pmix",
    "aws-hpc7g": "amzn2 neoverse_v1 4 efa efa none 0 none hydra -",
    "alps": "sles15 zen2 128 slingshot-11 cxi none 0 slurm srun cray",
    "opa": "rhel9 skylake_avx512 16 omni-path hfi1 none 0 none hydra -",
    "mi250x-flux": "rhel8 zen3 64 slingshot-11 cxi amd 8 flux flux -",
    "mi300a": "rhel8 zen4 96 slingshot-11 cxi amd-mi300a 4 none hydra -",
    "gaudi-roce": "ubuntu22.04 cascadelake 48 roce mlx5 gaudi 8 none hydra -",
}


def test_every_root_has_an_expectation():
    assert {path.name for path in DATA.iterdir() if path.is_dir()} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_machine(name):
    machine = look(DATA / name)
    found = [getattr(machine, key) for key in KEYS]
    words = ["-" if value is None else str(value) for value in found]
    assert " ".join(words) == EXPECTED[name]
    assert machine.problems() == []


@pytest.mark.parametrize("name", EXPECTED)
def test_system_file_is_valid_and_says_the_same(name):
    machine = look(DATA / name)
    system = system_of(machine)
    node = system.partitions["node"]
    assert (system.os, system.scheduler) == (machine.os, machine.scheduler)
    for key in ("cores", "memory_gb", "target", "fabric", "nic", "gpu", "gpus", "launcher", "pmi"):
        assert getattr(node, key) == getattr(machine, key), key
    assert node.compiler.version == machine.compiler.version


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_found_says_how(name):
    text = system_yaml(look(DATA / name), "site", date(2026, 11, 21))
    assert text.startswith("# Found by `mvstack discover` on ")
    assert " on 2026-11-21: edit freely; `mvstack check FILE` validates it.\n" in text
    assert "\nname: site\n" in text
    for line in text.splitlines():
        key = re.match(
            r" *(os|scheduler|cores|target|fabric|nic|gpus?|launcher|pmi|compiler):", line
        )
        assert key is None or "  # " in line, line


def test_libraries_of_alps_are_crays_newest():
    node = system_of(look(DATA / "alps")).partitions["node"]
    libfabric = node.externals["libfabric"]
    assert libfabric.prefix == "/opt/cray/libfabric/1.15.2.0"
    assert libfabric.providers == ["cxi", "rxm", "tcp"]
    assert node.externals["cray-pmi"].version == "6.1.8"
    assert node.externals["slurm"].mpi == ["none", "cray_shasta", "pmi2"]


def test_file_systems_are_romio_words():
    node = system_of(look(DATA / "alps")).partitions["node"]
    assert node.file_systems == ["ufs", "lustre", "nfs"]


def test_library_without_headers_is_no_external_and_is_said():
    machine = look(DATA / "expanse-cpu")
    assert "ucx" not in system_of(machine).partitions["node"].externals
    assert any(note.startswith("ucx ") and "no headers" in note for note in machine.notes)


def test_ucx_transports_and_rdma_core_version():
    azure = look(DATA / "azure-hbv4")
    ucx = next(item for item in azure.externals if item.name == "ucx")
    assert (ucx.prefix, ucx.version) == ("/opt/ucx-1.14.0", "1.14.0")
    assert ucx.transports == ["self", "dc_mlx5", "rc_verbs", "rc_mlx5", "ud_mlx5"]
    expanse = look(DATA / "expanse-cpu")
    rdma = next(item for item in expanse.externals if item.name == "rdma-core")
    assert rdma.version == "43.0"


def test_efa_uses_amazons_libfabric():
    libfabric = look(DATA / "aws-hpc7a").externals[0]
    assert (libfabric.name, libfabric.prefix) == ("libfabric", "/opt/amazon/efa")
    assert "efa" in libfabric.providers and "hook_noop" not in libfabric.providers


def test_what_limits_mpi_is_said():
    assert any("ptrace_scope is 1" in note for note in look(DATA / "aws-hpc7a").notes)
    assert any("64 KiB may be locked" in note for note in look(DATA / "opa").notes)
    assert any("--mpi=pmi2" in note for note in look(DATA / "gpu-v100").notes)
    assert any("Kubernetes" in note for note in look(DATA / "gaudi-roce").notes)
    assert any("two GPUs" in note for note in look(DATA / "mi250x-flux").notes)


def test_ethernet_of_an_azure_machine_is_no_roce():
    assert any("mlx5_an0" in note for note in look(DATA / "azure-hbv4").notes)


def test_toolset_off_path_is_told_and_not_taken():
    machine = look(DATA / "azure-hbv4")
    assert machine.compiler.version == "8.5.0" and not machine.compiler.complete
    assert any("toolset-12" in compiler.path for compiler in machine.compilers)
    assert any("without Fortran" in note for note in machine.notes)


def test_modules():
    assert look(DATA / "expanse-cpu").modules.version == "8.5.12"
    assert look(DATA / "alps").modules.command == "/opt/cray/pe/lmod/lmod/libexec/lmod"
    assert look(DATA / "opa").modules.kind == "none"
