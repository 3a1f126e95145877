"""Checks, launch line and job script through a real OpenPBS: one server and node on this machine.

The MPI is the one that `mvstack up local` made here, otherwise Debian's. OpenPBS is in PBS_EXEC
(/opt/pbs), built from its source; no distribution has a package of it.
"""

from __future__ import annotations

import copy
import os
import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from checks_tree import mpi_here
from job_script import beside, said, written
from pytest import MonkeyPatch

from mvstack.discover.nodes import by_hand, read
from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.test.results import problems
from mvstack.test.run import run_checks

pytestmark = pytest.mark.slow

TOP = Path(__file__).resolve().parents[2]

MACHINE = """\
name: queued
os: debian12
scheduler: pbs
partitions:
  node:
    nodes: 1
    cores: 4
    target: x86_64_v3
    fabric: shm
    launcher: hydra
    compiler: {version: "12.2.0"}
"""


@pytest.fixture(scope="module")
def pbs():
    """Start a PBS, and put its commands on PATH; end it afterwards."""
    if not (Path(os.environ.get("PBS_EXEC", "/opt/pbs")) / "bin" / "qsub").is_file():
        pytest.skip("skipped: unreachable: OpenPBS is not installed (of no package in Debian 12)")
    if os.geteuid() != 0:
        pytest.skip("skipped: a PBS of its own needs root")
    # PBS refuses a folder below one that everybody may write to, as /tmp is
    with TemporaryDirectory(prefix="mvapich-stack-pbs-", dir="/var/lib") as made:
        folder = Path(made)
        folder.chmod(0o755)  # its database runs as a user of its own
        words = [TOP / "tests" / "pbs" / "loopback", folder, "cat"]
        ready, log = folder / "ready", folder / "loopback.log"
        with beside(words, ready, log), MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")
            yield


@pytest.fixture(scope="module")
def planned():
    return make_plan(
        parse_system(MACHINE, Path("queued.yaml")), "node", load_release(), load_policy()
    )


@pytest.fixture(scope="module")
def plan(pbs, planned, tmp_path_factory):
    """An installed MPI, in a plan that has what the policy says of PBS."""
    found = mpi_here(tmp_path_factory.mktemp("tree"))
    mpi = found["mpi"][0] | {"launch": planned.mpi[0].launch, "launcher": "hydra"}
    return found | {"mpi": [mpi], "scheduler": planned.scheduler, "starter": planned.starter}


def test_every_check_is_a_job(plan, tmp_path):
    results = run_checks(plan, tmp_path, ["correct"])
    assert problems(results) == []
    asked = said("qstat", "-x", "-f")
    jobs = re.findall(r"^Job Id:", asked, re.M)
    assert jobs and set(re.findall(r"Exit_status = (\d+)", asked)) == {"0"}, asked
    assert set(re.findall(r"job_state = (\w)", asked)) == {"F"}, asked


def test_a_launcher_that_starts_alone_is_told(plan, tmp_path):
    changed = copy.deepcopy(plan)
    changed["mpi"][0]["launch"] = "sh -c 'for i in 1 2 3 4; do ./program & done; wait'"
    results = run_checks(changed, tmp_path, ["correct"])
    failed = {one["check"].split()[0] for one in results["cases"] if one["result"] == "fail"}
    assert "WorldSize" in failed, results["cases"]


def test_the_job_script_of_the_module_runs(plan, planned, tmp_path):
    written(plan, planned, tmp_path)
    words = planned.job["submit"].split()
    assert words[0] == "qsub"
    answer = said(words[0], "-o", "out", "-e", "err", "-W", "block=true", *words[1:], cwd=tmp_path)
    until = time.monotonic() + 30  # the job's files come back after its end
    while not (tmp_path / "out").exists() and time.monotonic() < until:
        time.sleep(0.5)
    printed = (tmp_path / "out").read_text() if (tmp_path / "out").exists() else ""
    ranks = re.findall(r"^rank (\d) of 4 sum 6", printed, re.M)
    assert sorted(ranks) == ["0", "1", "2", "3"], (answer, printed)


def test_the_line_of_adopt_has_a_node_look_at_itself(pbs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-P", "-m", "mvstack", "discover", "--json"]
    line = by_hand(load_policy().schedulers["pbs"].look, "workq", command)
    said("sh", "-c", line.replace("qsub ", "qsub -W block=true "))
    machine, why = read((tmp_path / "workq.json").read_bytes())
    assert machine is not None and machine.cores, why
