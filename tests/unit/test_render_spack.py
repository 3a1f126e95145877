"""The Spack environment of every partition: complete YAML that asks for what the plan says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mvstack.model.load import load_policy, load_release, load_system, parse_system, system_names
from mvstack.model.spack import spack_pins
from mvstack.model.system import External
from mvstack.plan import spackspecs
from mvstack.plan.make import make_plan
from mvstack.plan.types import Plan
from mvstack.render.spack import root, spack_files

RELEASE, POLICY = load_release(), load_policy()
RENDERED = Path(__file__).parents[2] / "environments" / "rendered"
PLANS = {
    f"{name}/{part}": make_plan(system, part, RELEASE, POLICY)
    for name in system_names()
    if (RENDERED / name).is_dir()  # all others are rendered once, in test_systems.py
    for system in [load_system(name)]
    for part in system.partitions
}
# What gcc 12.2.0 makes of a processor that it has no options for.
TARGETS = {"zen4": "zen3"}
TWO_DEVICES = """
name: here
builder: spack
os: debian12
partitions:
  node:
    {cores: 2, memory_gb: 8, target: x86_64_v3, fabric: shm, launcher: hydra,
     compiler: {version: 12.2.0}, externals: {ucx: {prefix: /usr}}, mpi: {product: mvapich}}
"""


def two_devices() -> Plan:
    """A plan with two MPI builds over a system compiler."""
    system = parse_system(TWO_DEVICES, Path("here.yaml"))
    return make_plan(system, "node", RELEASE, POLICY)


def read(plan: Plan) -> dict[str, Any]:
    """Every file of the plan's Spack environment, as YAML reads it."""
    return {name: YAML(typ="safe").load(text) for name, text in spack_files(plan).items()}


@pytest.fixture(params=sorted(PLANS))
def plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


def test_what_is_included_is_there(plan: Plan) -> None:
    files = read(plan)
    included = files["spack/spack.yaml"]["spack"]["include"]
    assert {f"spack/{name}" for name in included} <= set(files)
    assert len(included) == len(set(included)) == 5


def test_roots_are_the_mpi_and_every_package_that_spack_has(plan: Plan) -> None:
    specs = read(plan)["spack/spack.yaml"]["spack"]["specs"]
    wanted = [root(plan, build) for build in plan.mpi]
    wanted += [f"{one.spack} ^{root(plan, plan.mpi[0])}" for one in plan.packages if one.spack]
    assert specs == wanted


def test_the_mpi_is_required_as_planned(plan: Plan) -> None:
    packages = read(plan)["spack/packages.yaml"]["packages"]
    build = plan.mpi[0]
    package = build.spack["package"]
    assert packages["mpi"]["require"] == [package]
    assert package + packages[package]["require"][0] == build.spack["spec"]
    target = f"target={TARGETS.get(plan.target, plan.target)}"
    assert packages["all"]["require"] == [f"os={plan.os}", target]


def test_transports_and_externals_are_in_it(plan: Plan) -> None:
    packages = read(plan)["spack/packages.yaml"]["packages"]
    for build in plan.mpi:
        under = build.spack["transport"]
        if under and under["spec"] != under["package"]:
            assert under["spec"].endswith(packages[under["package"]]["require"][0])
    for one in plan.externals:
        entry = packages[one["package"]]
        assert entry["externals"] == [{"spec": one["spec"], "prefix": one["prefix"]}]
        assert entry["buildable"] is False


def test_the_processor_is_required_of_all_that_spack_builds(plan: Plan) -> None:
    """Spack takes the requirements of `all` for no package that has its own."""
    packages = read(plan)["spack/packages.yaml"]["packages"]
    required = packages.pop("all")["require"]
    own = {name: row["require"] for name, row in packages.items() if "require" in row}
    virtual = {name for name, row in own.items() if re.match(r"[a-z][\w-]*(@|$)", row[0])}
    assert {"mpi", "blas", "c"} <= virtual
    assert set(own) - virtual >= {"hwloc", "openblas", plan.mpi[0].spack["package"]}
    for name in set(own) - virtual:
        assert own[name][1:] == required, name


def test_every_requirement_has_its_reason_above_it(plan: Plan) -> None:
    lines = spack_files(plan)["spack/packages.yaml"].splitlines()
    for number, line in enumerate(lines):
        if line.strip() == "require:" and "mpi" not in lines[number - 2]:
            assert lines[number - 1].strip().startswith("# "), line


def test_a_compiler_that_spack_builds_has_an_environment_and_the_path_that_others_use() -> None:
    plan = PLANS["expanse/cpu"]
    files = read(plan)
    view = files["spack/compiler/spack.yaml"]["spack"]["view"]["gcc"]["root"]
    external = files["spack/packages.yaml"]["packages"]["gcc"]["externals"][0]
    assert external["prefix"] == view
    assert external["extra_attributes"]["compilers"]["c"] == f"{view}/bin/gcc"


def test_what_a_node_has_is_said_so_that_any_machine_can_solve_for_it() -> None:
    """A lock of expanse (rocky8) said debian12 of every package, and named Debian's compiler."""
    files = read(PLANS["expanse/cpu"])
    for name in ("spack/packages.yaml", "spack/compiler/spack.yaml"):
        packages = files[name].get("spack", files[name])["packages"]
        assert "os=rocky8" in packages["all"]["require"]
        assert packages["glibc"]["externals"] == [{"spec": "glibc@=2.28", "prefix": "/usr"}]
    assert packages["gcc"]["externals"][0]["spec"].startswith("gcc@8.5.0 ")


def test_spack_has_its_own_name_for_some_operating_systems() -> None:
    packages = read(replace(PLANS["expanse/cpu"], os="toss4"))["spack/packages.yaml"]["packages"]
    assert packages["all"]["require"][0] == "os=rhel8"
    unknown = read(replace(PLANS["expanse/cpu"], os="plan9"))
    assert unknown["spack/packages.yaml"]["packages"]["all"]["require"][0] == "os=plan9"
    for name in ("spack/packages.yaml", "spack/compiler/spack.yaml"):
        assert "glibc" not in unknown[name].get("spack", unknown[name])["packages"]


def test_two_devices_are_told_apart_by_as_little_as_it_takes() -> None:
    plan = two_devices()
    files = read(plan)
    assert "spack/compiler/spack.yaml" not in files
    specs = files["spack/spack.yaml"]["spack"]["specs"]
    assert specs[:2] == ["mvapich@=4.0 netmod:=ofi", "mvapich@=4.0 netmod:=ucx"]
    assert "hpcc@=1.5.0 ^mvapich@=4.0 netmod:=ofi" in specs
    packages = files["spack/packages.yaml"]["packages"]
    projections = files["spack/spack.yaml"]["spack"]["view"]["default"]["projections"]
    assert projections["mvapich@=4.0 netmod:=ofi"] == "mvapich-4.0-ofi"
    assert "netmod" not in packages["mvapich"]["require"][0]
    assert packages["ucx"]["require"] and packages["libfabric"]["require"]
    assert files["spack/concretizer.yaml"]["concretizer"]["unify"] == "when_possible"


def test_an_external_without_a_version_is_said_to_be_of_no_use() -> None:
    text = spack_files(two_devices())["spack/packages.yaml"]
    assert "Spack needs its version to use it" in text


def test_a_library_of_the_site_is_asked_for_no_more_than_it_has() -> None:
    site = External(prefix="/opt/x", version="1.0", providers=["cxi", "tcp;ofi_rxm"])
    spec = spackspecs.transport("libfabric", "fabrics=cxi,shm,tcp +cuda", "external", site, POLICY)
    assert spec == "libfabric fabrics=cxi,tcp +cuda"
    assert spackspecs.transport("libfabric", "fabrics=tcp", "embedded", None, POLICY) == ""


def test_a_libfabric_of_unknown_providers_is_asked_for_none() -> None:
    """Where fi_info is missing its external names none, and Spack would find nothing that fits."""
    site = External(version="1.17.0", prefix="/usr")
    spec = spackspecs.transport("libfabric", "fabrics=tcp,shm +cuda", "external", site, POLICY)
    assert spec == "libfabric +cuda"


def test_providers_that_spack_does_not_know_are_left_out() -> None:
    system = parse_system(
        TWO_DEVICES.replace(
            "ucx: {prefix: /usr}",
            "libfabric: {version: 1.17.0, prefix: /usr, providers: [net, verbs, tcp;ofi_rxm]}",
        ),
        Path("here.yaml"),
    )
    (found,) = spackspecs.externals(system.partitions["node"], POLICY)
    assert (found["package"], found["prefix"]) == ("libfabric", "/usr")
    assert found["spec"] == "libfabric@1.17.0 fabrics=rxm,tcp,verbs"


def test_pins_are_tags_with_their_commits() -> None:
    pins = spack_pins()
    for pin in (pins.spack, pins.packages):
        assert pin.url.startswith("https://") and len(pin.commit) == 40 and pin.tag.startswith("v")
