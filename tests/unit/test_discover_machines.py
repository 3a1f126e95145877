"""What is found on the machines of tests/data/discover, and that their files are valid."""

from __future__ import annotations

import re
from datetime import date

import pytest
from discover_roots import MACHINES, kept, system_of

from mvstack.discover import look, system_yaml

KEYS = (
    *("os", "target", "cores", "fabric", "nic", "gpu", "gpus", "scheduler", "launcher", "pmi"),
    "gpu_arch",
)
EXPECTED = {
    "gpu-v100": "rocky8 cascadelake 40 infiniband mlx5 nvidia 4 slurm srun pmi2 sm_70",
    "azure-hbv4": "almalinux8 zen4 176 infiniband mlx5 none 0 none hydra - -",
    "aws-hpc7g": "amzn2 neoverse_v1 4 efa efa none 0 none hydra - -",
    "alps": "sles15 zen2 128 slingshot-11 cxi none 0 slurm srun cray -",
    "opa": "rhel9 skylake_avx512 16 omni-path hfi1 none 0 none hydra - -",
    "mi250x-flux": "rhel8 zen3 64 slingshot-11 cxi amd 8 flux flux - gfx90a",
}


def test_every_root_has_an_expectation():
    assert set(MACHINES) == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_machine(name):
    machine = look(kept(name))
    found = [getattr(machine, key) for key in KEYS]
    words = ["-" if value is None else str(value) for value in found]
    assert " ".join(words) == EXPECTED[name]
    assert machine.problems() == []


@pytest.mark.parametrize("name", EXPECTED)
def test_system_file_is_valid_and_says_the_same(name):
    machine = look(kept(name))
    system = system_of(machine)
    node = system.partitions["node"]
    assert (system.os, system.scheduler) == (machine.os, machine.scheduler)
    for key in ("cores", "memory_gb", "target", "fabric", "nic", "gpu", "gpus", "launcher", "pmi"):
        assert getattr(node, key) == getattr(machine, key), key
    assert node.compiler.version == machine.compiler.version


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_found_says_how(name):
    text = system_yaml(look(kept(name)), "site", date(2026, 11, 21))
    assert text.startswith("# Found by `mvstack discover` on ")
    assert " on 2026-11-21: edit freely; `mvstack check FILE` validates it.\n" in text
    assert "\nname: site\n" in text
    for line in text.splitlines():
        key = re.match(
            r" *(os|scheduler|cores|target|fabric|nic|gpus?|launcher|pmi|compiler):", line
        )
        assert key is None or "  # " in line, line


def test_libraries_of_alps_are_crays_newest():
    node = system_of(look(kept("alps"))).partitions["node"]
    libfabric = node.externals["libfabric"]
    assert libfabric.prefix == "/opt/cray/libfabric/1.15.2.0"
    assert libfabric.providers == ["cxi", "rxm", "tcp"]
    assert node.externals["cray-pmi"].version == "6.1.8"
    assert node.externals["slurm"].mpi == ["none", "cray_shasta", "pmi2"]


def test_file_systems_are_romio_words():
    node = system_of(look(kept("alps"))).partitions["node"]
    assert node.file_systems == ["ufs", "lustre", "nfs"]


def test_ucx_transports():
    azure = look(kept("azure-hbv4"))
    ucx = next(item for item in azure.externals if item.name == "ucx")
    assert (ucx.prefix, ucx.version) == ("/opt/ucx-1.14.0", "1.14.0")
    assert ucx.transports == ["self", "dc_mlx5", "rc_verbs", "rc_mlx5", "ud_mlx5"]


def test_what_limits_mpi_is_said():
    assert any("64 KiB may be locked" in note for note in look(kept("opa")).notes)
    assert any("--mpi=pmi2" in note for note in look(kept("gpu-v100")).notes)
    assert any("two GPUs" in note for note in look(kept("mi250x-flux")).notes)


def test_toolset_off_path_is_told_and_not_taken():
    machine = look(kept("azure-hbv4"))
    assert machine.compiler.version == "8.5.0" and not machine.compiler.complete
    assert any("toolset-12" in compiler.path for compiler in machine.compilers)
    assert any("without Fortran" in note for note in machine.notes)
