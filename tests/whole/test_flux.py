"""Checks, launch line and job script through a real Flux: two brokers on this machine.

The MPI is the one that `mvstack up local` made here, otherwise Debian's. Flux is the one on PATH:
flux-core, from its source or from Spack; Debian 12 has no package of it.
"""

from __future__ import annotations

import copy
import re
import shutil
import sys
from pathlib import Path

import pytest
from checks_tree import mpi_here
from job_script import beside, said, written
from pytest import MonkeyPatch

from mvstack.model.load import load_policy, load_release, parse_system
from mvstack.plan.make import make_plan
from mvstack.test.results import problems
from mvstack.test.run import run_checks

pytestmark = pytest.mark.slow

MACHINE = """\
name: fluxed
os: debian12
scheduler: flux
partitions:
  node:
    nodes: 2
    cores: 2
    target: x86_64_v3
    fabric: tcp
    launcher: flux
    compiler: {version: "12.2.0"}
"""


@pytest.fixture(scope="module")
def flux(tmp_path_factory):
    """Start an instance of two brokers, and give its environment; end it afterwards."""
    if not shutil.which("flux"):
        pytest.skip(
            "skipped: unreachable: Flux is not installed (flux-core, of no Debian 12 package)"
        )
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not list(Path(shutil.which("flux") or "").parents[1].glob(f"lib*/flux/{version}")):
        pytest.skip(f"skipped: Flux's Python bindings are not for {version}")
    told = tmp_path_factory.mktemp("flux") / "environment"
    script = f"env > {told}.new; mv {told}.new {told}; cat"
    words = ["flux", "start", "--test-size=2", "sh", "-c", script]
    with beside(words, told, told.with_name("log")), MonkeyPatch.context() as patch:
        for line in told.read_text().splitlines():
            name, _, value = line.partition("=")
            if name.startswith(("FLUX_", "PYTHONPATH")):
                patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def planned():
    return make_plan(
        parse_system(MACHINE, Path("fluxed.yaml")), "node", load_release(), load_policy()
    )


@pytest.fixture(scope="module")
def plan(flux, planned, tmp_path_factory):
    """An installed MPI, in a plan that has what the policy says of Flux."""
    found = mpi_here(tmp_path_factory.mktemp("tree"))
    mpi = found["mpi"][0] | {"launch": planned.mpi[0].launch, "launcher": "flux"}
    return found | {"mpi": [mpi], "scheduler": planned.scheduler, "starter": planned.starter}


def test_every_check_runs_in_an_allocation_of_its_own(plan, tmp_path):
    # no benchmarks: both brokers bind their ranks to the same cores of this machine
    results = run_checks(plan, tmp_path, ["correct"])
    assert problems(results) == []
    asked = said("flux", "jobs", "-a", "--no-header", "--format={name} {nnodes} {status_abbrev}")
    jobs = [line.split() for line in asked.splitlines()]
    # those of checks of the fabric are on both nodes
    assert jobs and {nodes for _, nodes, _ in jobs} == {"1", "2"}, asked
    assert {state for _, _, state in jobs} == {"CD"}, asked


def test_ranks_that_get_no_pmi_are_told(plan, tmp_path):
    changed = copy.deepcopy(plan)
    changed["mpi"][0]["launch"] = plan["mpi"][0]["launch"].replace("run", "run -o pmi=off")
    results = run_checks(changed, tmp_path, ["correct"])
    why = {case["why"] for case in results["cases"] if case["check"].startswith("WorldSize")}
    assert any("PMI mismatch: 4 processes started as one job of 4 each saw" in one for one in why)


def test_gpus_are_hidden_from_what_did_not_ask_for_any(flux):
    assert said("flux", "run", "printenv", "CUDA_VISIBLE_DEVICES").strip() == "-1"
    launches = [row.launch for row in load_policy().launchers if "flux" in row.when.launcher]
    assert {" -g 1 " in line for line in launches} == {True, False}


def test_the_job_script_of_the_module_runs(plan, planned, tmp_path):
    written(plan, planned, tmp_path)
    words = planned.job["submit"].replace("batch", "batch --output=out").split()
    assert words[:2] == ["flux", "batch"]
    answer = said(*words, cwd=tmp_path).strip()
    answer += said("flux", "job", "wait-event", "--timeout=120", answer, "clean")
    printed = (tmp_path / "out").read_text()
    ranks = re.findall(r"^rank (\d) of 4 sum 6", printed, re.M)
    assert sorted(ranks) == ["0", "1", "2", "3"], (answer, printed)
