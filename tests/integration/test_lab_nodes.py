"""Checks of whole nodes among hosts of tests/lab/hosts: one with slow memory is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checks_tree import LMOD, mpi_here

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
HOSTS = HERE.parent / "lab" / "hosts"
# The network of the lab has TCP alone.
OVER_TCP = {"ch4:ofi": "FI_PROVIDER=tcp", "ch4:ucx": "UCX_TLS=tcp,self,posix"}
RUN = """
import json, os, sys
from pathlib import Path
from mvstack.test.run import run_checks
plan, folder = json.loads(Path("plan.json").read_text()), Path.cwd()
for build in plan["mpi"]:
    build["launch"] = build["launch"].replace("LAB_HOSTS", os.environ["LAB_HOSTS"])
run_checks(plan, folder / "out", [], checks=folder / "checks")
"""


@pytest.fixture
def check(tmp_path):
    """Run a check over some hosts, each rank started through some words; give its case."""
    missing = [one for one in ("ip", "tc", "ssh", "dropbear") if not shutil.which(one, path=PATH)]
    if os.geteuid() or missing:
        pytest.skip(f"skipped: unreachable: needs root, and {', '.join(missing)}")
    plan = mpi_here(tmp_path / "tree")
    plan = {**plan, "mpi": plan["mpi"][:1], "packages": [], "cores": 2, "scheduler": ""}
    setting = OVER_TCP[plan["mpi"][0]["device"]]

    def run(hosts, *wrapper, planned=0, stem="memory"):
        shutil.rmtree(tmp_path / "checks", ignore_errors=True)
        shutil.copytree(HERE.parent / "reframe", tmp_path / "checks")
        shutil.rmtree(tmp_path / "checks" / "apps")
        for path in (tmp_path / "checks").glob("*.py"):
            if "simple_test" in path.read_text() and path.stem != stem:
                path.unlink()
        launch = ["env", setting, *["mpiexec", "-launcher", "ssh", "-f", "LAB_HOSTS"]]
        launch += ["-ppn", "{ranks_per_node}", "-n", "{ranks}", *wrapper, "{program}"]
        plan["mpi"][0]["launch"] = " ".join(launch)
        plan["job"] = {"nodes": planned or hosts, "per_node": 2}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        words = [HOSTS, "-n", str(hosts), sys.executable, "-c", RUN]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        cases = json.loads((tmp_path / "out" / "results.json").read_text())["cases"]
        return cases[0] if stem == "memory" else {case["check"]: case for case in cases}

    run.mpicc = lambda *words: subprocess.run(
        [
            *("bash", "-c"),
            f"source {LMOD}; export MODULEPATH={plan['tree']}/modules/Core; module load "
            f'mvapich-stack/{plan["release"]} {plan["mpi"][0]["module"]}; mpicc "$@"',
            *("mpicc", *words),
        ],
        check=True,
    )
    return run


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def test_hosts_of_one_machine_have_its_memory(check):
    """Three times, whatever else the machine does."""
    for _ in range(3):
        case = check(2)
        assert (case["result"], case["why"]) == ("pass", "")
        figures = {row["name"]: (row["value"], row["unit"]) for row in case["figures"]}
        print(figures)
        assert sorted(figures) == ["memory_bandwidth", "memory_bandwidth_of_slowest"]
        assert all(value > 0 and unit == "GB/s" for value, unit in figures.values())


def test_a_host_of_half_the_speed_is_named(check, tmp_path):
    library = tmp_path / "wtime.so"
    check.mpicc("-shared", "-fPIC", "-o", library, HERE / "interpose_wtime.c")
    for hosts, slow in ((2, "h2"), (3, "h1")):
        case = check(hosts, "env", f"LD_PRELOAD={library}", f"SLOW={slow}")
        print(case["why"])
        assert case["result"] == "fail"
        others = "median of the others" if hosts > 2 else "other"
        said = rf"{slow} has [\d.]+ GB/s of memory, 0\.[3-6]\d of the {others} \([\d.]+\)\. Look"
        assert re.match(said, case["why"]), case["why"]
        assert case["why"].count("GB/s of memory") == 1


def test_one_node_gives_its_figure_alone(check):
    case = check(1)
    assert (case["result"], case["why"]) == ("pass", "")
    assert [row["name"] for row in case["figures"]] == ["memory_bandwidth"]


def test_fewer_nodes_than_planned_are_told(check):
    case = check(1, planned=2)
    assert case["why"].startswith("2 nodes were asked for, and the ranks ran on h1: look at")


@pytest.mark.parametrize("stem", ["world", "collectives"])
def test_a_node_and_two_of_them_are_right(check, stem):
    cases = check(2, stem=stem)
    late = [case for case in cases.values() if "did not return within its limit" in case["why"]]
    if late and late[0]["mpi"] == "mpich/4.0.2-ucx":
        pytest.skip("Debian's MPICH over UCX may wait in MPI_Finalize for ranks that wait for it")
    assert {name: case["why"] for name, case in cases.items() if case["result"] != "pass"} == {}
    name = {"world": "WorldSizeOfJob", "collectives": "CollectivesOfJob"}[stem]
    assert (cases[f"{name} node"]["ranks"], cases[f"{name} nodes"]["ranks"]) == (2, 4)


def test_ranks_of_two_nodes_that_are_each_alone_are_told(check):
    lost = ("env", "-u", "PMI_FD", "-u", "PMI_RANK", "-u", "PMI_SIZE")
    cases = check(2, *lost, stem="world")
    assert "PMI mismatch: 4 processes started as one" in cases["WorldSizeOfJob nodes"]["why"]
    assert "PMI mismatch: 2 processes started as one" in cases["WorldSizeOfJob node"]["why"]


def test_a_job_of_one_node_is_not_run_twice(check):
    case = check(1, stem="world")["WorldSizeOfJob nodes"]
    assert (case["result"], case["why"]) == ("skip", "a job of the plan has one node")
