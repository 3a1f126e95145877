"""The check Memory among hosts of tests/lab/hosts: a node with slow memory is named."""

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
def memory(tmp_path):
    """Run the check over some hosts, each rank started through some words; give its case."""
    missing = [one for one in ("ip", "tc", "ssh", "dropbear") if not shutil.which(one, path=PATH)]
    if os.geteuid() or missing:
        pytest.skip(f"skipped: unreachable: needs root, and {', '.join(missing)}")
    plan = mpi_here(tmp_path / "tree")
    plan |= {"mpi": plan["mpi"][:1], "packages": [], "cores": 2}
    setting = OVER_TCP[plan["mpi"][0]["device"]]
    shutil.copytree(HERE.parent / "reframe", tmp_path / "checks")
    for path in (tmp_path / "checks").glob("*.py"):
        if "simple_test" in path.read_text() and path.stem != "memory":
            path.unlink()
    shutil.rmtree(tmp_path / "checks" / "apps")

    def run(hosts, *wrapper, planned=0):
        launch = ["env", setting, *["mpiexec", "-launcher", "ssh", "-f", "LAB_HOSTS"]]
        launch += ["-ppn", "{ranks_per_node}", "-n", "{ranks}", *wrapper, "{program}"]
        plan["mpi"][0]["launch"] = " ".join(launch)
        plan["job"] = {"nodes": planned or hosts}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        words = [HOSTS, "-n", str(hosts), sys.executable, "-c", RUN]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        (case,) = json.loads((tmp_path / "out" / "results.json").read_text())["cases"]
        return case

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


def test_hosts_of_one_machine_have_its_memory(memory):
    """Three times, whatever else the machine does."""
    for _ in range(3):
        case = memory(2)
        assert (case["result"], case["why"]) == ("pass", "")
        figures = {row["name"]: (row["value"], row["unit"]) for row in case["figures"]}
        print(figures)
        assert sorted(figures) == ["memory_bandwidth", "memory_bandwidth_of_slowest"]
        assert all(value > 0 and unit == "GB/s" for value, unit in figures.values())


def test_a_host_of_half_the_speed_is_named(memory, tmp_path):
    library = tmp_path / "wtime.so"
    memory.mpicc("-shared", "-fPIC", "-o", library, HERE / "interpose_wtime.c")
    for hosts, slow in ((2, "h2"), (3, "h1")):
        case = memory(hosts, "env", f"LD_PRELOAD={library}", f"SLOW={slow}")
        print(case["why"])
        assert case["result"] == "fail"
        others = "median of the others" if hosts > 2 else "other"
        said = rf"{slow} has [\d.]+ GB/s of memory, 0\.[3-6]\d of the {others} \([\d.]+\)\. Look"
        assert re.match(said, case["why"]), case["why"]
        assert case["why"].count("GB/s of memory") == 1


def test_one_node_gives_its_figure_alone(memory):
    case = memory(1)
    assert (case["result"], case["why"]) == ("pass", "")
    assert [row["name"] for row in case["figures"]] == ["memory_bandwidth"]


def test_fewer_nodes_than_planned_are_told(memory):
    case = memory(1, planned=2)
    assert case["why"].startswith("2 nodes were asked for, and the ranks ran on h1: look at")
