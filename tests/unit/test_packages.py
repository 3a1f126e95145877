"""Which packages of a release a partition gets: by profile, MPI, builder, GPU, licence, source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mvstack.cli.rendering import render_systems
from mvstack.install import stages
from mvstack.install.local import plan_local, without_root
from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.model.release import Package, Release
from mvstack.model.system import External, System
from mvstack.plan.make import make_plan
from mvstack.plan.types import Accepted, Given, Plan
from mvstack.render.partition import render
from mvstack.support.errors import InvalidInput

POLICY = load_policy()
BASE = load_release()


def package(name: str, **changes: Any) -> Package:
    values = {
        "version": "1.0",
        "title": f"what {name} is",
        "module": f"{name.lower()}/1.0",
        "spack": f"{name.lower()}@=1.0",
        "toolchain": "mvfoss",
        "profile": "full",
        "why": "a test",
    }
    return Package(**{"name": name, **values, **changes})


def plan(*packages: Package, of: str = "azure-hbv4/hpc", **more: Any) -> Plan:
    name, _, partition = of.partition("/")
    system = load_system(name)
    if licensed := more.pop("licensed", None):
        install = system.install.model_copy(update={"licensed": licensed})
        system = system.model_copy(update={"install": install})
    release = Release(**{**BASE.__dict__, "packages": list(packages)})
    return make_plan(system, partition, release, POLICY, Given(**more))


def got(made: Plan) -> list[tuple[str, str]]:
    return [(one.name, one.mpi) for one in made.packages]


def why_not(made: Plan) -> dict[str, str]:
    return {row["name"]: row["because"] for row in made.left_out}


@pytest.mark.parametrize(
    ("profile", "names"),
    [("", ["A"]), ("default", ["A"]), ("small", ["A", "B"]), ("full", ["A", "B", "C"])],
)
def test_a_profile_holds_what_the_smaller_ones_hold(profile: str, names: list[str]) -> None:
    rows = [
        package(name, profile=of)
        for name, of in zip("ABC", ("default", "small", "full"), strict=True)
    ]
    made = plan(*rows, profile=profile)
    assert [one.name for one in made.packages] == names
    assert made.profile == (profile or "default") and made.left_out == []


def test_a_site_may_leave_out_what_every_profile_holds() -> None:
    system = load_system("azure-hbv4")
    part = system.partitions["hpc"].model_copy(update={"without": {"A": "not wanted"}})
    system = system.model_copy(update={"partitions": {"hpc": part}})
    release = Release(**{**BASE.__dict__, "packages": [package("A", profile="default")]})
    made = make_plan(system, "hpc", release, POLICY)
    assert got(made) == [] and why_not(made) == {"A": "the site: not wanted"}


def test_the_partitions_own_profile_is_taken_when_none_is_given() -> None:
    system = load_system("azure-hbv4")
    part = system.partitions["hpc"].model_copy(update={"profile": "full"})
    system = system.model_copy(update={"partitions": {"hpc": part}})
    release = Release(**{**BASE.__dict__, "packages": [package("C")]})
    assert make_plan(system, "hpc", release, POLICY).profile == "full"
    assert make_plan(system, "hpc", release, POLICY, Given(profile="small")).packages == []


def test_what_proves_an_mpi_is_over_each_and_applications_over_the_first() -> None:
    made = plan(
        package("HPCC", profile="default"), package("LAMMPS"), profile="full", of="aws-c6i/hpc"
    )
    builds = [build.module for build in made.mpi]
    assert got(made) == [
        *[("HPCC", builds[0]), ("LAMMPS", builds[0])],
        *[("HPCC", module) for module in builds[1:]],
    ]


def test_what_stands_on_the_compiler_alone_is_there_once_and_first() -> None:
    made = plan(package("LAMMPS"), package("METIS", toolchain="gcc"), profile="full")
    first, second = made.packages
    assert (first.name, first.mpi, first.easyconfig) == (
        *("METIS", ""),
        f"METIS-1.0-GCC-{made.compiler['version']}.eb",
    )
    assert second.easyconfig.startswith("LAMMPS-1.0-mvfoss-2026.11-")
    assert second.toolchain.startswith("mvfoss-2026.11-")


def test_the_versionsuffix_ends_the_name_of_the_easyconfig() -> None:
    made = plan(package("ScaLAPACK", suffix="-fb"), profile="full")
    assert made.packages[0].easyconfig.endswith("-fb.eb")
    assert not made.packages[0].toolchain.endswith("-fb.eb")


def test_of_those_that_stand_in_for_each_other_the_first_that_can_be_had() -> None:
    new, old = (
        package("QE", version="7.5", instead="qe"),
        package("QE", version="6.7", instead="qe"),
    )
    assert [one.version for one in plan(new, old, profile="full").packages] == ["7.5"]
    made = plan(new, old, profile="full", unavailable=frozenset({("QE", "7.5")}))
    assert [one.version for one in made.packages] == ["6.7"] and made.left_out == []
    none = plan(new, old, profile="full", unavailable=frozenset({("QE", "7.5"), ("QE", "6.7")}))
    assert none.packages == [] and [row["version"] for row in none.left_out] == ["7.5", "6.7"]


def test_a_stand_in_is_no_more_there_than_what_it_stands_on() -> None:
    """Of a package whose newer version lacks a library, the older one lacks it, too."""
    given = Given(profile="full")
    system = load_system("azure-hbv4")

    def lacking(product: str, *_: str) -> str:
        return "gone" if product == "FlexiBLAS" else ""

    made = plan_local(system, "hpc", BASE, POLICY, lacking, given)
    left = why_not(made)
    assert (
        left["FlexiBLAS"] == "gone" and left["LAMMPS"] == "needs flexiblas/3.2.1, which is left out"
    )
    names = {one.name for one in made.packages}
    assert "Hypre" in names and not names & {"LAMMPS", "GROMACS", "QuantumESPRESSO", "PETSc"}

    def without_github(product: str, version: str, _: str) -> str:
        return "gone" if (product, version) == ("Hypre", "2.33.0") else ""

    made = plan_local(system, "hpc", BASE, POLICY, without_github, given)
    assert "2.32.0" in {one.version for one in made.packages if one.name == "Hypre"}
    assert why_not(made)["PETSc"] == "needs hypre/2.33.0, which is left out"


UCX = ("UCX", "1.20.0")
UCX_THERE: dict[str, Any] = {"prefix": "/usr", "variants": "+cuda+gdrcopy"}


def machine(ucx: str, **changes: Any) -> System:
    """A machine alone whose distribution has this version of UCX."""
    system = load_system("azure-hbv4")
    row = system.partitions["hpc"].compiler.model_copy(
        update={"origin": "system", "version": "13.3.0"}
    )
    values = {"compiler": row, "fabric": "shm", "nic": None, "nodes": 1, **changes}
    there = {"ucx": External(**UCX_THERE, version=ucx)} if ucx else {}
    part = system.partitions["hpc"].model_copy(update={**values, "externals": there})
    return system.model_copy(update={"partitions": {"hpc": part}})


def alone(ucx: str, lacks: set[str] | None = None, **changes: Any) -> Plan:
    """The plan for such a machine."""

    def lacking(name: str, *_: str) -> str:
        return "no way to the network" if name in (lacks or set()) else ""

    return plan_local(machine(ucx, **changes), "hpc", BASE, POLICY, lacking, Given())


def test_a_machine_alone_whose_ucx_is_older_gets_that_of_the_release() -> None:
    made = alone("1.13.1")
    assert [(one.name, one.version) for one in made.packages if not one.mpi] == [UCX]
    first, second = made.mpi
    assert (first.device, first.transport["provision"]) == ("ch4:ofi", "embedded")
    assert first.parameters["adapters"] is False
    assert "dependencies" not in first.parameters
    assert (second.device, second.transport["provision"]) == ("ch4:ucx", "built")
    assert second.parameters["dependencies"] == [UCX]


@pytest.mark.parametrize(
    ("ucx", "changes"),
    [
        ("1.20.0", {}),
        ("1.21", {}),
        ("", {}),
        ("1.13.1", {"gpu": "nvidia"}),
        ("1.13.1", {"fabric": "tcp"}),
        ("1.13.1", {"fabric": "infiniband"}),
    ],
)
def test_other_machines_keep_their_ucx(ucx: str, changes: dict[str, Any]) -> None:
    made = alone(ucx, **changes)
    assert not [one for one in made.packages if one.name == "UCX"]
    assert not [row for row in made.left_out if row["name"] == "UCX"]
    assert {one.transport["provision"] for one in made.mpi if "ucx" in one.device} <= {"external"}


def test_render_writes_for_such_a_machine_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machine("1.13.1", image=None).model_copy(update={"discover": True})
    monkeypatch.setattr(stages, "load", lambda *_: (here, ["hpc"]))
    render_systems(["local"], tmp_path, check=False)
    assert "UCX-1.20.0-GCC" in (tmp_path / "azure-hbv4" / "hpc" / "easystack.yaml").read_text()


def test_a_ucx_that_is_named_says_how_it_is_asked_for() -> None:
    made = make_plan(
        load_system("azure-hbv4"), "hpc", BASE, POLICY, Given(names=frozenset({"UCX"}))
    )
    assert "`mpi: {transport: built}`" in why_not(made)["UCX"]


def test_a_ucx_that_cannot_be_obtained_leaves_the_mpi_over_that_of_the_distribution() -> None:
    made = alone("1.13.1", {"UCX"})
    assert why_not(made)["UCX"] == "no way to the network"
    assert [one.device for one in made.mpi] == ["ch4:ofi", "ch4:ucx"]
    assert made.mpi[1].transport["provision"] == "external"
    assert "dependencies" not in made.mpi[1].parameters


@pytest.mark.parametrize(
    ("lacks", "changes", "provision"),
    [
        (set(), {}, "embedded"),
        ({"mvapich"}, {}, "external"),  # MPICH, of whose source Debian has left libfabric out
        (set(), {"fabric": "tcp"}, "external"),
        (set(), {"gpu": "nvidia"}, "external"),
    ],
)
def test_a_machine_alone_starts_programs_without_the_distributions_libfabric(
    lacks: set[str], changes: dict[str, Any], provision: str
) -> None:
    made = [one for one in alone("1.20.0", lacks, **changes).mpi if "ofi" in one.device]
    assert {one.transport["provision"] for one in made} <= {provision}
    assert made or "gpu" in changes
    for one in made:
        assert ("libfabric" in one.parameters) == (provision == "embedded")


@pytest.mark.parametrize(
    ("fabric", "there", "devices", "provision"),
    [
        ("shm", {"libfabric", "ucx", "hwloc"}, ["ch4:ofi", "ch4:ucx"], "embedded"),
        ("shm", {"ucx"}, ["ch4:ofi", "ch4:ucx"], "embedded"),
        ("shm", {"libfabric"}, ["ch4:ofi"], "embedded"),
        ("shm", set(), ["ch4:ofi"], "embedded"),
        ("tcp", {"ucx"}, ["ch4:ofi"], "embedded"),
        ("tcp", {"libfabric"}, ["ch4:ofi"], "external"),
    ],
)
def test_who_is_not_root_gets_what_the_headers_and_the_source_allow(
    fabric: str, there: set[str], devices: list[str], provision: str
) -> None:
    here = machine("1.20.0" if "ucx" in there else "", fabric=fabric)
    part = without_root(here.partitions["hpc"], there)
    here = here.model_copy(update={"partitions": {"hpc": part}})
    made = plan_local(here, "hpc", BASE, POLICY, lambda *_: "", Given())
    assert [one.device for one in made.mpi] == devices
    assert made.mpi[0].transport["provision"] == provision
    assert not [one for one in made.packages if one.name == "UCX"]


def test_a_ucx_that_a_site_has_among_its_packages_is_beneath_no_mpi() -> None:
    made = plan(package("UCX", version="1.20.0", toolchain="gcc"), profile="full")
    assert got(made) == [("UCX", "")]
    assert made.mpi[0].transport["provision"] == "external"
    assert "dependencies" not in made.mpi[0].parameters
    assert "easyconfigs/UCX-1.20.0-GCC-12.2.0.eb" not in render(made)


def test_a_second_ucx_of_a_site_is_not_that_of_the_mpi() -> None:
    second = package("UCX", version="1.19.0", module="ucx/1.19.0", toolchain="gcc")
    release = Release(**{**BASE.__dict__, "packages": [*BASE.packages, second]})
    made = plan_local(
        machine("1.13.1"), "hpc", release, POLICY, lambda *_: "", Given(profile="full")
    )
    assert [one.version for one in made.packages if one.name == "UCX"] == ["1.20.0", "1.19.0"]
    assert made.mpi[1].parameters["dependencies"] == [UCX]


def test_what_is_left_out_says_why() -> None:
    made = plan(
        package("Qchem", licence="commercial", page="https://q.example"),
        package("Namd", licence="registration", page="https://n.example"),
        package("Awp", toolchain="", easybuild="no recipe yet"),
        package("Gpu", where={"gpu": ["nvidia", "amd"]}),
        package("Spacky", where={"builder": "spack"}),
        package("Gone"),
        profile="full",
        unavailable=frozenset({("Gone", "1.0")}),
    )
    said = why_not(made)
    assert made.packages == []
    assert said["Qchem"].startswith("needs a licence: https://q.example. ")
    assert "mvstack sources add FILE --as Qchem@1.0" in said["Qchem"]
    assert said["Namd"].startswith("needs registration: https://n.example")
    assert said["Awp"] == "no easyconfig: no recipe yet"
    assert said["Gpu"] == "it is for partitions with gpu nvidia or amd; this has none"
    assert said["Spacky"] == "spack alone builds it"
    assert said["Gone"] == "its source cannot be obtained here"


def test_a_licensed_package_that_the_site_has_is_for_a_group() -> None:
    amber = package("AMBER", licence="commercial", page="https://a.example")
    made = plan(amber, profile="full", licensed={"AMBER": "amber-users"})
    assert [(one.name, one.readers) for one in made.packages] == [("AMBER", "amber-users")]
    assert got(plan(amber, package("LAMMPS"), profile="full", licensed={"AMBER": "x"}))[1:]


@pytest.mark.parametrize("name", ["amber", "LAMMPS", "VASP"])
def test_a_licence_for_what_needs_none_or_is_not_there_is_a_slip(name: str) -> None:
    rows = [package("AMBER", licence="commercial", page="https://a.example"), package("LAMMPS")]
    with pytest.raises(InvalidInput) as error:
        plan(*rows, profile="full", licensed={name: "users"})
    (problem,) = error.value.problems
    assert name in problem.message and problem.allowed == "AMBER"


def test_gpu_variants_go_over_an_mpi_that_takes_gpu_buffers() -> None:
    variant = {"spack": "+cuda cuda_arch={cuda_arch}", "otherwise": "~cuda", "why": "Kokkos"}
    row = package("LAMMPS", gpu=variant)
    spec = {
        of: plan(row, of=of, profile="full").packages[0].spack
        for of in ("expanse/gpu", "expanse/cpu", "aws-p5/gpu")
    }
    assert spec["expanse/gpu"] == "lammps@=1.0 +cuda cuda_arch=70"
    assert spec["expanse/cpu"] == "lammps@=1.0 ~cuda"
    assert spec["aws-p5/gpu"] == "lammps@=1.0 +cuda cuda_arch=90"


def test_what_is_for_gpus_alone_is_for_those_of_the_partition() -> None:
    row = package("AWP", spack="awp@=1.0 +cuda cuda_arch={cuda_arch}", where={"gpu": ["nvidia"]})
    assert plan(row, of="expanse/gpu", profile="full").packages[0].spack == (
        "awp@=1.0 +cuda cuda_arch=70"
    )
    system = load_system("expanse")
    unknown = system.partitions["gpu"].model_copy(update={"gpu_model": "X1", "gpu_arch": None})
    system = system.model_copy(update={"partitions": {"gpu": unknown}})
    release = Release(**{**BASE.__dict__, "packages": [row]})
    made = make_plan(system, "gpu", release, POLICY, Given(profile="full"))
    assert made.packages == []
    assert "gpu_model X1 begins with none of V100" in why_not(made)["AWP"]


@pytest.mark.parametrize("name", system_names())
def test_no_placeholder_is_left_in_what_the_release_asks_for(name: str) -> None:
    system = load_system(name)
    licensed = {one.name: "users" for one in BASE.packages if one.licence != "open"}
    install = system.install.model_copy(update={"licensed": licensed})
    system = system.model_copy(update={"install": install})
    for partition in system.partitions:
        made = make_plan(system, partition, BASE, POLICY, Given(profile="full"))
        assert [one.spack for one in made.packages if "{" in one.spack] == []


def test_what_needs_a_newer_compiler_is_left_out() -> None:
    rows = [package("New", where={"gcc": "12"}), package("Old", where={"gcc": "10.2"})]
    made = plan(*rows, of="expanse/cpu", profile="full")
    assert [one.name for one in made.packages] == ["Old"]
    assert why_not(made) == {"New": "it needs gcc 12 or newer; this has gcc 10.2.0"}


def test_spack_leaves_out_what_it_has_no_recipe_of() -> None:
    made = plan(package("Odd", spack=""), of="expanse/cpu", profile="full")
    assert why_not(made) == {"Odd": "Spack has no recipe of it"}


def test_accepted_bytes_are_told_and_used() -> None:
    taken = {("QE", "7.5"): Accepted(["a" * 64], "site patch")}
    made = plan(package("QE", version="7.5"), profile="full", accepted=taken)
    assert (made.packages[0].accepted_sha256, made.packages[0].not_upstream) == (
        *(["a" * 64], "site patch"),
    )


def test_each_row_of_the_release_has_its_own_reason() -> None:
    reasons = [(one.name, one.why) for one in BASE.packages]
    assert all(why for _, why in reasons)
    # rows of one package (Horovod for each framework) may share theirs
    for name, why in reasons:
        assert {other for other, said in reasons if said == why} == {name}
