"""The groups of OSU's benchmarks on a real MPI: each fault that is planted is told.

The MPI is an installed one that brings them; Debian's does not.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from checks_tree import mpi_here
from faults import caught
from test_reframe_mpi import interposed, prefix, through

from mvstack.test.run import run_checks

CHECKS = Path(__file__).resolve().parents[1] / "reframe"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    found = mpi_here(tmp_path_factory.mktemp("tree"))
    found |= {"mpi": found["mpi"][:1], "packages": []}
    if not (prefix(found) / "libexec" / "osu-micro-benchmarks").exists():
        pytest.skip("the MPI brings no OSU Micro-Benchmarks")
    return found


@pytest.fixture
def group(plan, tmp_path):
    """The case of one group with another launch line, perhaps with less time for each program."""

    def run(name, launch="", fault="", limit=240):
        checks = tmp_path / "checks"
        shutil.copytree(CHECKS, checks)
        for path in (one for one in checks.rglob("*.py") if one.stem != "osu"):
            if "simple_test" in path.read_text():
                path.unlink()
        for file, old, new in (
            ("benchmark_group.py", r"limit = \d+", f"limit = {limit}"),
            ("osu.py", r"parameter\(\s*\[[^]]*\]", f'parameter(["{name}"]'),
        ):
            text, count = re.subn(old, new, (checks / file).read_text())
            assert count == 1
            (checks / file).write_text(text)
        changed = copy.deepcopy(plan)
        changed["mpi"][0]["launch"] = launch or changed["mpi"][0]["launch"]
        (case,) = run_checks(changed, tmp_path / "out", [], checks=checks)["cases"]
        if fault:
            caught(fault, [case["check"]] * (case["result"] == "fail"), case["why"], plan)
        return case

    return run


def instead(plan, tmp_path, program, script):
    """The launch line with ``script``, of rank 0, in the place of one program."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(
        f'#!/bin/bash\ncase " $* " in */{program}\\ *) ;; *) exec "$@" ;; esac\n'
        f'if [ "${{PMI_RANK:-0}}" = 0 ]; then {script}; fi\n'
    )
    wrapper.chmod(0o755)
    return through(plan, str(wrapper))


TABLE = "echo '# OSU MPI_Put Latency Test v7.5\n# Size          Latency (us)\n8  0.10\n16  0.10'"


@pytest.mark.parametrize(
    ("script", "fault", "why"),
    [
        (
            f"{TABLE}; exec sleep 60",
            "an MPI_Put that never ends, at one size",
            "osu_put_latency did not end within 10 s: its last figure is that of 16 bytes, next is "
            "32 bytes. It hangs, or the machine is far too busy; run it alone, with the MPI's "
            "module loaded: ",
        ),
        ("true", "a benchmark that ends well and prints no table", "no figure in what it printed"),
        ("echo 8 bytes", "a benchmark that prints something else", "it printed: 8 bytes; run it"),
        (TABLE, "a benchmark that ends too early", "16 figures are missing, the first of 32 bytes"),
        (
            f"{TABLE}; exit 3",
            "a benchmark that dies, and says nothing",
            "osu_put_latency ended with status 3: its last figure is that of 16 bytes, next is 32",
        ),
    ],
)
def test_a_benchmark_that_gives_no_figures_is_told(group, plan, tmp_path, script, fault, why):
    launch = instead(plan, tmp_path, "osu_put_latency", script)
    case = group("one-sided", launch, fault, 10 if "sleep" in script else 240)
    assert case["result"] == "fail" and why in case["why"], case["why"]
    assert "/osu_put_latency -m 8:1048576" in case["why"]


def test_a_benchmark_without_our_mpi_is_told(group, plan, tmp_path):
    """One that prints all its figures and loads no MPI at all: a program left from elsewhere."""
    rows = "for ((n = 8; n <= 1 << 20; n *= 2)); do echo $n 0.1; done"
    launch = instead(plan, tmp_path, "osu_put_latency", f"{TABLE}; {rows}")
    case = group("one-sided", launch, "a benchmark that is none of the MPI under test")
    assert "0 of 2 processes loaded a libmpi: look at the files loader.osu_put_lat" in case["why"]


def test_worlds_of_one_are_told(group, plan, tmp_path):
    case = group("startup", through(plan, "env -u PMI_FD -u PMI_RANK -u PMI_SIZE"))
    assert "osu_init: it ran several times side by side" in case["why"]


def test_a_wrong_value_is_told_by_the_benchmarks_own_validation(group, plan, tmp_path):
    fault = "an Allreduce that is wrong in its last element, to OSU's own validation"
    case = group("collective", interposed(plan, tmp_path, "allreduce"), fault)
    assert re.search("osu_allreduce: its own validation says Fail at [48]... bytes", case["why"])


def test_a_slow_put_is_told_by_its_reference(group, plan, tmp_path):
    row = {"partition": plan["partition"], "mpi": plan["mpi"][0]["module"], "unit": "us"}
    row |= {"figure": "osu_put_latency", "size": 8, "value": 20, "below": None, "above": 0.5}
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / f"{plan['system']}.yaml").write_text(
        json.dumps([row | {"source": "none"}])
    )
    fault = "an MPI_Put that has become slow"
    case = group("one-sided", interposed(plan, tmp_path, "slow_put"), fault)
    assert case["result"] == "fail" and "osu_put_latency_8=" in case["why"]
    assert [one["size"] for one in case["figures"] if one["reference"]] == [8]


def test_a_group_passes_as_it_is_and_gives_its_figures(group):
    case = group("startup")
    assert case["result"] == "pass" and case["benchmark"].startswith("OSU Micro-Benchmarks ")
    assert [(one["name"], one["unit"]) for one in case["figures"]] == [
        ("osu_init", "ms"),
        ("osu_hello", "ms"),
    ]


def test_a_job_that_is_ended_leaves_no_benchmark(tmp_path):
    """ReFrame ends a job by its process group; `timeout` alone starts one of its own."""
    pid, source = tmp_path / "pid", CHECKS / "src" / "run_benchmarks.sh"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $$ > {pid}\nexec sleep 100\n")
    program.chmod(0o755)
    line = f"source {source}; run_benchmark it 100 '' {program}"
    job = subprocess.Popen(["bash", "-c", line], start_new_session=True, cwd=tmp_path)
    until = time.monotonic() + 20
    while not (pid.exists() and pid.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    time.sleep(0.2)
    stat = Path(f"/proc/{int(pid.read_text())}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"
