"""tests/lab/verbs --slurm: ranks that srun starts on emulated machines, over their adapters.

The MPIs, the record and what is believed are those of tests/whole/test_lab_verbs.py. They are
started by `srun --mpi=pmi2`, whose plugin answers MPICH's "simple" PMI, too.
MVSTACK_TEST_VERBS_PMIX names prefixes of more, configured with --with-pmi=pmix, which
`srun --mpi=pmix` starts and hydra cannot. For each the machines are started once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from test_lab_verbs import (
    BY_ADAPTER,
    MORE,
    RDMA,
    SAYS,
    SETTINGS,
    TCP,
    TESTS,
    Job,
    called,
    named,
    planned_for,
    ready,
    record,
)

PMIX = [Path(one) for one in os.environ.get("MVSTACK_TEST_VERBS_PMIX", "").split()]
MODULEFILES = TESTS.parent / "modulefiles"
sys.path.insert(0, str(MODULEFILES))
from mpi_doctor import OK, WRONG, ran  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
STORY = r"""
job() { # job NAME PMI SETTINGS PROGRAM…: what it says and its status, packets of RDMA and seconds
    local before=$(lab packets h1) began=$(date +%s) status=0
    timeout ${LIMIT:-120} env $3 srun --mpi=$2 --kill-on-bad-exit=1 -N 2 -n 2 "${@:4}" \
        >said/$1 2>&1 </dev/null || status=$?
    echo $status $(($(lab packets h1) - before)) $(($(date +%s) - began)) >said/$1.counts
}
killed() { # kills the rank of h2 in the midst of its collectives
    until [[ $(grep -c ^right said/killed 2>/dev/null) -gt 50 ]]; do sleep 0.2; done
    ssh h2 pkill -9 -x collectives
}
"""


@pytest.fixture(scope="module", params=["", *map(str, MORE + PMIX)], ids=lambda one: Path(one).name)
def tasks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("slurm")
    mpi = ready(request.param, place)
    guard = ["cc", "-shared", "-fPIC", "-o", place / "guard.so", MODULEFILES / "launch_guard.c"]
    subprocess.run([*guard, "-ldl"], check=True)
    planned, tcp = planned_for(mpi), TCP.get(named(mpi)["Device"])
    pmi, other = ("pmix", "pmi2") if mpi in PMIX else ("pmi2", "pmix")
    lines = [
        f"{SETTINGS}{STORY}",
        f"job planned {pmi} '{planned} {SAYS}' ./identity",
        f"job tcp {pmi} '{tcp} {SAYS}' ./identity" if tcp else "",
        f"LIMIT=400 job right {pmi} '{planned}' ./collectives",
        f"job none none '{planned} {SAYS}' ./identity",
        f"job other {other} '{planned} {SAYS}' ./identity",
        f"job guarded none '{planned} LD_PRELOAD=./guard.so' ./identity",
        f"killed & job killed {pmi} '{planned}' ./collectives",
    ]
    (place / "story.sh").write_text("\n".join(lines) + "\n")
    lab = [TESTS / "lab" / "verbs", "--slurm", "--see", str(mpi), "bash", "story.sh"]
    done = subprocess.run(lab, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for counts in (place / "said").glob("*.counts"):
        status, packets, seconds = map(int, counts.read_text().split())
        said = counts.with_suffix("").read_text()
        found[counts.stem] = Job(status, packets, seconds, said, named(mpi)["Device"])
    started = {"none": "none", "guarded": "none", "other": other}
    name = f"{called(mpi)}, srun --mpi={pmi}"
    rows = [
        {"mpi": name, "job": job, "pmi": started.get(job, pmi), "worlds": worlds(one)}
        | {"tcp": one.tcp, "right": one.right, "named": one.named}
        | {key: value for key, value in asdict(one).items() if key not in ("said", "device")}
        for job, one in sorted(found.items())
    ]
    print(*map(json.dumps, rows), sep="\n")
    if os.environ.get("MVSTACK_TEST_VERBS_RECORD"):
        record(name, rows)
    return found


def worlds(job: Job) -> int:
    """How many worlds there were: the first rank of each says the library's version."""
    return job.said.count("library version begins\n")


def judged(job: Job) -> tuple[str, str]:
    """How `mpi-doctor` judges what two ranks said: its state, and what it found."""
    mpi = {"device": job.device, "believe": BY_ADAPTER, "launch": "srun", "module": "mvapich"}
    found = ran(mpi, job.said, job.status)
    return found[0].state, " ".join(one.what for one in found)


def test_srun_starts_one_world_and_it_goes_over_rdma(tasks):
    job = tasks["planned"]
    assert job.status == 0 and worlds(job) == 1, job.said
    assert len(job.tcp) == 2 and max(job.tcp) < 1 << 20 and job.packets > RDMA, job.said
    assert {"h1", "h2"} == set(re.findall(r"^rank \d on (h\d)", job.said, re.M))
    assert judged(job)[0] == OK, judged(job)


def test_collectives_are_right(tasks):
    job = tasks["right"]
    assert job.status == 0, job.said
    assert job.right == 705 and "wrong" not in job.said
    assert job.packets > RDMA


def test_tcp_is_told_where_rdma_was_there(tasks):
    job = tasks.get("tcp") or pytest.skip("it has no TCP between machines")
    assert job.status == 0 and worlds(job) == 1, job.said
    assert min(job.tcp) > 30 << 20 and job.packets < RDMA, job.said
    state, what = judged(job)
    assert state == WRONG and "between two nodes" in what


@pytest.mark.parametrize("name", ["none", "other"])
def test_ranks_that_are_each_alone_are_told(tasks, name: str):
    """Nothing went over TCP, and the library names the adapter: the worlds and the packets tell."""
    job = tasks[name]
    assert worlds(job) == 2 or job.status not in (0, 124), job.said
    assert job.packets < RDMA
    state, what = judged(job)
    assert state == WRONG and ("a world of its own" in what or job.status), what


def test_the_launch_guard_ends_ranks_that_are_each_alone(tasks):
    job = tasks["guarded"]
    assert job.status not in (0, 124), job.said
    if job.device == "ch3:mrail" and "Segmentation fault" in job.said:
        return  # of PMIx: it ends in MPI_Init, before the guard is asked (docs/upstream.md)
    assert "launch-guard: srun started 2 tasks, and each is alone" in job.said


def test_a_killed_rank_ends_the_job(tasks):
    job = tasks["killed"]
    assert job.status not in (0, 124), job.said
    assert 50 < job.right < 705, "it ended before the kill"
