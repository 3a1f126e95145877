"""Historic releases: each names the build that a talk ran, and says plainly what cannot be had.

The expected builds are from the talks' slides, which each row names, never from what we answer.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from mvstack.model.load import load_policy, load_release, load_system, release_names
from mvstack.model.release import Release
from mvstack.plan.make import make_plan
from mvstack.plan.types import MpiBuild, Plan
from mvstack.render.partition import render
from mvstack.report.told import said_of, sayings
from mvstack.support.errors import InvalidInput, Refused
from mvstack.support.home import home

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import references  # noqa: E402

POLICY = load_policy()
HISTORIC = {name: one for name in release_names() if (one := load_release(name)).systems}

# release, partition: product, version, how it is started, can its source be had
RAN = {
    # "MVAPICH2-X version 2.0 + Intel Compilers" (MUG 2014, Software Environment Details)
    ("2014.08", "gordon/cpu"): ("mvapich2-x", "2.0", "mpirun_rsh", False),
    # "MPI Libraries MVAPICH2 2.3.4 MVAPICH2-X 2.3" on "CentOS 7.7 HPC Image" (MUG 2020, Setup)
    ("2020.08", "azure-hbv2/hpc"): ("mvapich2", "2.3.4", "mpiexec", True),
    ("2020.08", "azure-hbv2/hpc-x"): ("mvapich2-x", "2.3", "mpiexec", False),
    # "Library : MVAPICH2 3.0a" on Slingshot 11; "MVAPICH2-3.0a+OPX vs MVAPICH2-2.3.7+PSM2" (SC22)
    ("2022.11", "slingshot-test/cpu"): ("mvapich", "3.0a", "srun", False),
    ("2022.11", "osu-omni-path/cpu-opx"): ("mvapich", "3.0a", "mpiexec", False),
    ("2022.11", "osu-omni-path/cpu-psm2"): ("mvapich2", "2.3.7", "mpiexec", True),
    # "OpenMPI 4.1.4, MPICH 4.1, MVAPICH2 3.0a", Ubuntu 22.04, HPE libfabric 1.15.0.0 (CUG 2023)
    ("2023.05", "alps/cpu-openmpi"): ("openmpi", "4.1.4", "srun", True),
    ("2023.05", "alps/cpu-mpich"): ("mpich", "4.1", "srun", True),
    ("2023.05", "alps/cpu-mvapich"): ("mvapich", "3.0", "srun", True),
    ("2023.05", "alps/cpu-mvapich-alpha"): ("mvapich", "3.0a", "srun", False),
    # "MVAPICH2 version 2.3.7", "mvapich2/2.3.7-gdr", "MVAPICH2 GDR 2.3.6, GCC 8.3.1" (MUG 2023)
    ("2023.08", "expanse/cpu"): ("mvapich2", "2.3.7", "srun", True),
    ("2023.08", "expanse/gpu"): ("mvapich2-gdr", "2.3.7", "srun", False),
    ("2023.08", "expanse/gpu-latency"): ("mvapich2-gdr", "2.3.6", "srun", True),
    # versions.json of azhpc-images 0da9672e: mvapich2 2.3.7-azure
    ("2024.08", "azure-hbv2/hpc"): ("mvapich2-azure", "2.3.7", "mpiexec", False),
}


def plan_of(release: str, name: str) -> Plan:
    one, (system, _, partition) = HISTORIC[release], name.partition("/")
    return make_plan(one.then(load_system(system)), partition, one, POLICY)


def build_of(release: str, name: str) -> MpiBuild:
    return plan_of(release, name).mpi[0]


@pytest.mark.parametrize("release, name", RAN)
def test_the_build_is_what_the_talk_ran(release, name):
    product, version, start, _ = RAN[release, name]
    build = build_of(release, name)
    assert (build.product, build.version, build.launch.split()[0]) == (product, version, start)


@pytest.mark.parametrize("release, name", RAN)
def test_what_can_be_had_renders_and_what_is_gone_names_page_and_file(release, name):
    product, version, _, there = RAN[release, name]
    plan = plan_of(release, name)
    if there:
        assert f"@={version}" in render(plan)["spack/packages.yaml"]
        return
    with pytest.raises(Refused) as refused:
        render(plan)
    told = str(refused.value)
    assert f"{product} {version} cannot be had" in told
    assert "https://mvapich.cse.ohio-state.edu/" in told
    assert "rpm" in told.lower() or ".tar.gz" in told
    assert f"externals: {{{product}: {{version: {version}" in told


def test_every_partition_of_a_historic_release_has_a_plan_of_its_own_product():
    for release, one in HISTORIC.items():
        for system, partitions in one.systems.items():
            for partition, was in partitions.items():
                build = build_of(release, f"{system}/{partition}")
                assert (build.product, build.version) == (was.mpi.product, was.mpi.version)


def test_three_x_chooses_its_provider_by_its_own_variable_and_four_x_does_not():
    """SC22: "MPIR_CVAR_OFI_USE_PROVIDER=<prov>"; MVAPICH 4.0 takes FI_PROVIDER alone."""
    old = build_of("2022.11", "slingshot-test/cpu").environment
    assert old["MPIR_CVAR_OFI_USE_PROVIDER"]["value"] == "cxi"
    assert "MPIR_CVAR_SINGLE_HOST_ENABLED" not in old
    new = make_plan(load_system("slingshot-test"), "cpu", load_release(), POLICY).mpi[0].environment
    assert new["MPIR_CVAR_SINGLE_HOST_ENABLED"]["value"] == "0"
    assert "MPIR_CVAR_OFI_USE_PROVIDER" not in new


def test_open_mpi_may_take_no_way_but_cxi():
    build = build_of("2023.05", "alps/cpu-openmpi")
    values = {name: one["value"] for name, one in build.environment.items()}
    assert values["OMPI_MCA_pml"] == "cm"
    assert values["OMPI_MCA_mtl"] == "ofi"
    assert values["OMPI_MCA_mtl_ofi_provider_include"] == "cxi"
    assert build.believe["provider"] == ["cxi"]
    assert build.believe["device"] == ""  # its version text names none


def test_a_historic_release_is_never_the_newest_and_takes_nothing_from_today():
    assert load_release().systems == {}
    assert all(one.status == "historic" for one in HISTORIC.values())
    todays = {
        (product, entry.version) for product, rows in load_release().mpi.items() for entry in rows
    }
    assert not any(version == "3.0a" or product == "openmpi" for product, version in todays)


def test_another_system_is_refused_with_those_that_it_is_of():
    with pytest.raises(Refused, match=r"release 2014\.08 is of gordon, not of expanse"):
        HISTORIC["2014.08"].then(load_system("expanse"))


def test_a_partition_that_the_system_has_not_is_an_error():
    data = HISTORIC["2014.08"].model_dump()
    data["systems"]["gordon"] = {"gpu": data["systems"]["gordon"]["cpu"]}
    with pytest.raises(InvalidInput, match="gpu: system gordon has no partition of this name"):
        Release.model_validate(data).then(load_system("gordon"))


def test_the_talks_figures_stand_beside_the_very_library():
    shown = [
        f"{one.what} {one.why}" for one in said_of("expanse", "gpu-latency", "mvapich2-gdr/2.3.6")
    ]
    assert any("1.51" in one for one in shown)
    assert not any("AWP-ODC" in one for one in shown)
    assert said_of("expanse", "cpu", "mvapich/4.1") == ()


@pytest.mark.parametrize(
    ("system", "mpi", "figure"),
    [
        ("expanse", "mvapich2-gdr/2.3.6", ("osu_latency", "latency", 1.51, "us")),
        ("expanse", "mvapich2-gdr/2.3.6", ("osu_latency", "latency", 1.53, "us")),
        ("slingshot-test", "mvapich/3.0a", ("osu_latency", "latency", 2.0, "us")),
        ("slingshot-test", "mvapich/3.0a", ("osu_bw", "peak_bandwidth", 23985, "MB/s")),
        ("slingshot-test", "mvapich/3.0a", ("osu_bibw", "peak_bandwidth", 42034, "MB/s")),
        ("azure-hbv2", "mvapich2/2.3.4", ("osu_latency", "latency", 2.0, "us")),
        ("azure-hbv2", "mvapich2-x/2.3", ("osu_latency", "latency", 2.0, "us")),
    ],
)
def test_a_figure_is_that_of_the_slide(system, mpi, figure):
    found = {
        (row.benchmark, one.metric, one.value, one.unit)
        for row in sayings(home().files("references")[f"{system}.yaml"])
        if row.mpi == mpi
        for one in row.figures
    }
    assert figure in found


def test_what_judges_is_what_the_talk_says():
    """A row that judges has the value of a row that tells, of the same library."""
    metrics = {"latency": "latency", "bandwidth": "peak_bandwidth"}
    for system in ("slingshot-test", "azure-hbv2"):
        told = sayings(home().files("references")[f"{system}.yaml"])
        for row in references.load(system):
            values = [
                one.value
                for saying in told
                if saying.mpi == row["mpi"].rpartition("-")[0]
                for one in saying.figures
                if (one.metric, one.unit) == (metrics[row["figure"]], row["unit"])
            ]
            assert row["value"] in values, row


def test_flops_and_time_of_a_step_agree():
    """AWP-ODC does the same work at each point of its mesh, on any machine."""
    per_point = []
    for row in sayings(home().files("references")["expanse.yaml"]):
        runs: dict[tuple[str, bool], dict[str, float]] = {}
        for one in row.figures if row.benchmark == "AWP-ODC" else ():
            of = {**row.parameters, **one.of}
            runs.setdefault((of["mesh"], of["gpu_aware_mpi"]), {})[one.metric] = one.value
        per_point += [
            run["performance"] * run["time_per_step"] / math.prod(map(int, mesh.split("x")))
            for (mesh, _), run in runs.items()
        ]
    assert len(per_point) == 6
    assert max(per_point) < 1.02 * min(per_point)  # of figures with three digits


def test_the_library_that_a_figure_names_is_in_a_historic_release():
    known = {
        f"{p}/{v.version}" for one in HISTORIC.values() for p, rows in one.mpi.items() for v in rows
    }
    named = {row.mpi for path in home().files("references").values() for row in sayings(path)} - {
        ""
    }
    assert named
    assert named <= known


def test_a_figure_of_a_talk_judges_the_build_of_that_talk_alone():
    judged = 0
    for system in ("slingshot-test", "azure-hbv2"):
        for row in references.load(system):
            builds = [
                build_of(release, f"{system}/{row['partition']}").module
                for release, one in HISTORIC.items()
                if row["partition"] in one.systems.get(system, {})
            ]
            assert row["mpi"] in builds
            judged += 1
    assert judged == 4
