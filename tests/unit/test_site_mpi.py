"""An MPI that the site has: planned by name, rendered for both builders, refused with a reason."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from easybuild.framework.easyconfig.parser import EasyConfigParser
from ruamel.yaml import YAML

from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.plan.types import Plan
from mvstack.render.partition import render
from mvstack.support.errors import InvalidInput, Problem, Refused

POLICY, RELEASE = load_policy(), load_release()
TEXT = """\
name: mine
os: {os}
scheduler: slurm
builder: {builder}
partitions:
  gpu:
    nodes: 8
    cores: 64
    memory_gb: 512
    target: {target}
    fabric: {fabric}
    gpu: {gpu}
    gpus: {gpus}
    {more}
    launcher: srun
    pmi: {pmi}
    compiler: {{version: "12.2.0"}}
    mpi: {mpi}
    externals:
      slurm: {{prefix: /usr, version: "23.11.1"}}
      {external}
"""
OWN = 'mvapich-plus: {version: "4.1", prefix: /sw/plus}'
# Frontier, where OSU documents it, and Vista, which offers it
FRONTIER = {"os": "sles15", "target": "zen3", "fabric": "slingshot-11", "gpu": "amd", "pmi": "cray"}
VISTA = {"os": "rocky9", "target": "neoverse_v2", "fabric": "infiniband", "gpu": "nvidia"}


def planned(external: str = OWN, **facts: str) -> Plan:
    words = {"builder": "spack", "pmi": "pmi2", "mpi": "{}", "more": "title: x", **facts}
    words["gpus"] = "0" if words["gpu"] == "none" else "4"
    text = TEXT.format(external=external, **words)
    return make_plan(parse_system(text, Path("mine.yaml")), "gpu", RELEASE, POLICY)


def test_a_version_that_no_row_can_be_asked_about_is_an_error_of_its_line() -> None:
    with pytest.raises(
        InvalidInput, match=r"^mine.yaml:21: .*\n.*4.0-mysite\n.*such as 4.0 or 4.0\+mysite"
    ):
        planned('mvapich-plus: {version: "4.0-mysite", prefix: /sw/plus}', **VISTA)
    assert planned('mvapich-plus: {version: "4.1+mysite", prefix: /sw/plus}', **VISTA)


@pytest.mark.parametrize(
    ("facts", "build", "launch"),
    [
        (FRONTIER, "mvapich-plus 4.1 ch4:ofi", "srun -n {ranks} {program}"),
        (VISTA, "mvapich-plus 4.1 ch4:ucx", "srun --mpi=pmi2 -n {ranks} {program}"),
        (VISTA | {"gpu": "none"}, "mvapich-plus 4.1 ch4:ucx", ""),
        (FRONTIER | {"gpu": "none"}, "mvapich-plus 4.1 ch4:ofi", ""),
        (FRONTIER | {"gpu": "nvidia"}, "mvapich-plus 4.1 ch4:ofi", ""),
    ],
)
def test_the_sites_own_is_the_plan(facts: dict[str, str], build: str, launch: str) -> None:
    plan = planned(**facts)
    (mpi,) = plan.mpi
    assert f"{mpi.product} {mpi.version} {mpi.device}" == build
    assert mpi.provided == "/sw/plus" and mpi.launch.startswith(launch)
    assert "the site has it below /sw/plus" in mpi.reasons[1]["why"]


@pytest.mark.parametrize("facts", [FRONTIER, VISTA])
def test_without_it_no_package_of_plus_is_taken_there(facts: dict[str, str]) -> None:
    arch = {"more": "gpu_arch: gfx90a"} if facts["gpu"] == "amd" else {}
    assert planned("cmake: {prefix: /usr}", **facts, **arch).mpi[0].product == "mvapich"
    with pytest.raises(Refused, match="no MPI build fits"):
        planned("cmake: {prefix: /usr}", **facts, mpi="{product: mvapich-plus}")


@pytest.mark.parametrize(
    ("facts", "gpu"),
    [
        (FRONTIER, "gpu=rocm +rocm"),
        (VISTA, "gpu=cuda +cuda"),
        (VISTA | {"gpu": "none"}, "gpu=none"),
    ],
)
def test_spack_takes_it_as_it_is(facts: dict[str, str], gpu: str) -> None:
    text = render(planned(**facts))["spack/packages.yaml"]
    row = YAML(typ="safe").load(text)["packages"]["mvapich-plus"]  # duplicate keys are an error
    (external,) = row["externals"]
    assert row["buildable"] is False and external["prefix"] == "/sw/plus"
    said, required = external["spec"].split(), row["require"][0].split()
    assert said[0] == "mvapich-plus@4.1" and required[0] == "@=4.1"
    assert {*required[1:], *gpu.split()} <= set(said)


def test_spack_is_asked_for_nothing_beneath_it() -> None:
    packages = YAML(typ="safe").load(render(planned(**FRONTIER))["spack/packages.yaml"])
    assert "libfabric" not in packages["packages"]


@pytest.mark.parametrize(("fabric", "queue"), [("efa", "iqueue"), ("infiniband", None)])
def test_within_a_node_a_sites_mvapich_4_takes_the_queue_that_grows_by_rank_and_not_by_pair(
    fabric: str, queue: str | None
) -> None:
    own = 'mvapich: {version: "4.0", prefix: /sw/mvapich}'
    facts = {"os": "rocky9", "target": "zen4", "fabric": fabric, "gpu": "none"}
    (mpi,) = planned(own, **facts).mpi
    said = mpi.environment.get("MPIR_CVAR_CH4_SHM_POSIX_EAGER")
    assert (said and said["value"]) == queue
    ours = planned("cmake: {prefix: /usr}", **facts).mpi[0]  # built with that queue alone
    assert "MPIR_CVAR_CH4_SHM_POSIX_EAGER" not in ours.environment


def test_easybuild_gets_a_module_over_it() -> None:
    files = render(planned(**FRONTIER, builder="easybuild"))
    text = files["easyconfigs/MVAPICH-Plus-4.1-GCC-12.2.0-ofi.eb"]
    said = EasyConfigParser(rawcontent=text).get_config_dict()
    assert (said["easyblock"], said["prefix"]) == ("MvapichSite", "/sw/plus")
    assert "sources" not in said and said["modextravars"]["FI_PROVIDER"] == "cxi"
    chain = files["easyconfigs/gmvplus-2026.11-ofi.eb"]
    said = EasyConfigParser(rawcontent=chain).get_config_dict()
    assert ("MVAPICH-Plus", "4.1", "-ofi", ("GCC", "12.2.0")) in said["dependencies"]
    assert "HPCC-1.5.0-gmvplus-2026.11-ofi.eb" in files["easystack.yaml"]


def problem(external: str = OWN, **facts: str) -> Problem:
    with pytest.raises((Refused, InvalidInput)) as caught:
        planned(external, **facts)
    return caught.value.problems[0]


def test_one_that_does_not_drive_the_machine_is_refused_with_the_reason() -> None:
    found = problem(**FRONTIER, mpi='{device: "ch4:ucx"}')
    assert "UCX does not drive this fabric" in found.because and "ch4:ofi" in found.nearest
    found = problem(**FRONTIER | {"gpu": "intel"})
    assert "Level Zero" in found.because
    found = problem('mvapich2: {version: "2.3.7", prefix: /sw/mv2}', **FRONTIER | {"gpu": "none"})
    assert "no device for this fabric" in found.because
    assert "without the site's mvapich2" in found.nearest
    found = problem(**FRONTIER | {"fabric": "rockport", "gpu": "none"})
    assert "without the site's mvapich-plus" in found.nearest


@pytest.mark.parametrize(
    ("variants", "facts", "needed"),
    [
        ("netmod=ucx", FRONTIER, "netmod=ofi is needed for fabric slingshot-11"),
        ("gpu=cuda +cuda", FRONTIER, "gpu=rocm is needed"),
        ("gpu=none", VISTA, "gpu=cuda is needed"),
        ("netmod=ofi gpu=rocm", FRONTIER, ""),
        ("netmod=ucx gpu=cuda el=9", VISTA, ""),
    ],
)
def test_what_the_site_says_of_it_is_held_against_the_machine(
    variants: str, facts: dict[str, str], needed: str
) -> None:
    external = OWN.replace("}", f", variants: {variants}}}")
    if needed:
        found = problem(external, **facts)
        assert needed in found.message and found.where == "mine.yaml:21" and found.because
    else:
        text = render(planned(external, **facts))["spack/packages.yaml"]
        spec = YAML(typ="safe").load(text)["packages"]["mvapich-plus"]["externals"][0]["spec"]
        assert len(spec.split()) == len(set(spec.split())) and set(variants.split()) <= {
            *spec.split()
        }


@pytest.mark.parametrize(
    ("external", "mpi"),
    [
        ("mvapich-plus: {prefix: /sw/plus}", "{}"),
        (OWN, "{product: mvapich}"),
        (OWN, '{product: mvapich-plus, version: "5.0.0"}'),
        (OWN + '\n      mvapich2: {version: "2.3.7", prefix: /sw/mv2}', "{}"),
    ],
)
def test_which_one_it_is_must_be_clear(external: str, mpi: str) -> None:
    found = problem(external, **VISTA, mpi=mpi)
    assert found.where == "mine.yaml:21" and "the only one, with its version" in found.message


def test_checks_take_the_sites_mpi_for_the_one_under_test(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "reframe"))
    below = import_module("mvapich_stack_mixin").MvapichStackMixin.below_tree
    plan = planned(**FRONTIER)
    check = SimpleNamespace(tree=str(tmp_path), mpi=plan.as_dict()["mpi"][0])
    assert below(check, "/sw/plus/lib/libmpi.so.12") and below(check, f"{tmp_path}/bin/mpiexec")
    assert not below(check, "/usr/lib/libmpi.so.12")
    built = SimpleNamespace(tree=str(tmp_path), mpi={})
    assert not below(built, "/sw/plus/lib/libmpi.so.12")
