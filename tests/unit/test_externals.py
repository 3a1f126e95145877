"""What a site provides reaches the MPI that EasyBuild builds, as options of its configure."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from easybuild.framework.easyconfig.parser import EasyConfigParser

from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.render.partition import render

EASYBLOCKS = Path(__file__).resolve().parents[2] / "easyconfigs" / "easyblocks"
sys.path.insert(0, str(EASYBLOCKS))

from mvapich_configure import configure_options  # noqa: E402
from mvapich_gpu import gpu_options  # noqa: E402
from mvapich_options import options_for  # noqa: E402
from mvapich_parameters import check_parameters  # noqa: E402
from test_easyblock_parameters import params_of  # noqa: E402

POLICY, RELEASE = load_policy(), load_release()
TEXT = """\
name: mine
os: sles15
partitions:
  cpu:
    cores: 64
    memory_gb: 512
    target: zen3
    file_systems: [ufs, daos]
    compiler: {{version: "12.2.0"}}
    {facts}
    externals: {{{externals}}}
"""
SLINGSHOT = {"fabric": "slingshot-11", "launcher": "srun", "pmi": "cray"}
PMIX = {"fabric": "infiniband", "launcher": "srun", "pmi": "pmix"}
MRAIL = {"fabric": "infiniband", "launcher": "flux", "mpi": "{product: mvapich2}"}
GPU = {"fabric": "infiniband", "launcher": "srun", "pmi": "pmi2", "gpus": "4"}
AMD = GPU | {"gpu": "amd", "gpu_arch": "gfx90a"}


def configured(externals: str, **facts: str) -> list[str]:
    """The options that the MPI's configure gets, in a partition with these facts and externals."""
    lines = "\n    ".join(f"{name}: {value}" for name, value in facts.items())
    text = TEXT.format(facts=lines, externals=externals)
    plan = make_plan(parse_system(text, Path("mine.yaml")), "cpu", RELEASE, POLICY)
    build = plan.mpi[0]
    rendered = render(plan)[f"easyconfigs/{build.easyconfig}"]
    said: dict[str, Any] = EasyConfigParser(rawcontent=rendered).get_config_dict()
    product = (said["name"], said["version"].removesuffix("-2"))
    params = params_of(("MPICH", "4.0.2"))
    assert set(build.parameters) - {"osdependencies"} <= set(params)
    elsewhere = {"libfabric", "ucx", "hwloc"} & build.parameters.keys()
    assert said["osdependencies"] == [] or not elsewhere
    params |= {name: said[name] for name in params if name in said}
    options = options_for(*product)
    assert check_parameters(*product, params, options) == []
    return configure_options(*product, params, options) + gpu_options(params, options)


@pytest.mark.parametrize(
    ("facts", "external", "option"),
    [
        (PMIX, "pmix: {prefix: /opt/pmix}", "--with-pmix=/opt/pmix"),
        (PMIX, "pmix: {prefix: /usr}", "--with-pmix=/usr"),
        (PMIX, "ucx: {prefix: /opt/ucx}", "--with-ucx=/opt/ucx"),
        (PMIX, "hwloc: {prefix: /opt/hwloc}", "--with-hwloc=/opt/hwloc"),
        (PMIX, "xpmem: {prefix: /opt/xpmem}", "--with-xpmem=/opt/xpmem"),
        (PMIX, "daos: {prefix: /opt/daos}", "--with-daos=/opt/daos"),
        (PMIX | {"pmi": "pmi2"}, "slurm: {prefix: /opt/slurm}", "--with-slurm=/opt/slurm"),
        (SLINGSHOT, "cray-pmi: {prefix: /opt/cray/6.1}", "--with-pmi2=/opt/cray/6.1"),
        (SLINGSHOT, "pmi: {prefix: /opt/cray/6.1}", "--with-pmi2=/opt/cray/6.1"),
        (SLINGSHOT, "", "--with-pmi2=/opt/cray/pe/pmi/default"),
        (SLINGSHOT, "libfabric: {prefix: /opt/ofi}", "--with-libfabric=/opt/ofi"),
        (GPU | {"gpu": "nvidia"}, "cuda: {prefix: /opt/cuda}", "--with-cuda=/opt/cuda"),
        (AMD, "rocm: {prefix: /opt/rocm}", "--with-hip=/opt/rocm"),
        (AMD, "hip: {prefix: /opt/hip}", "--with-hip=/opt/hip"),
        (
            GPU | {"gpu": "intel"},
            "oneapi-level-zero: {prefix: /opt/ze}, ucx: {prefix: /opt/ucx}",
            "--with-ze=/opt/ze",
        ),
        (MRAIL, "rdma-core: {prefix: /opt/ofed}", "--with-ib-include=/opt/ofed/include"),
        (MRAIL, "flux-core: {prefix: /opt/flux}", "--with-flux=/opt/flux"),
        (MRAIL, "", "--with-flux=/usr"),
    ],
)  # fmt: skip
def test_the_prefix_of_an_external_reaches_configure(
    facts: dict[str, str], external: str, option: str
) -> None:
    assert option in configured(external, **facts)


def test_what_this_build_does_not_stand_on_is_not_said() -> None:
    every = [
        f"{name}: {{prefix: /opt/odd}}"
        for name, row in POLICY.externals.items()
        if row.parameter not in (None, "ucx", "hwloc", "xpmem", "daos")
        if name not in ("slurm", "pmi", "rocm")
    ]
    here = configured(", ".join(every), **(PMIX | {"pmi": "pmi2"}))
    assert not [one for one in here if "/opt/odd" in one]


def test_what_the_mpi_embeds_needs_no_package_of_the_distribution() -> None:
    facts = {"fabric": "shm", "mpi": "{device: ch4:ofi, libfabric: embedded, hwloc: embedded}"}
    options = configured("", **facts, launcher="hydra")
    assert {"--with-libfabric=embedded", "--with-hwloc=embedded"} <= set(options)


def test_every_parameter_of_the_policy_is_one_of_the_easyblock() -> None:
    text = (EASYBLOCKS / "mvapich.py").read_text()
    for row in POLICY.externals.values():
        assert row.parameter is None or f'"{row.parameter}": [' in text
