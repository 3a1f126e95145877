"""tests/lab/verbs --slurm --rails 2: a link that is cut under a job that srun started.

Slurm's messages and what the ranks print go by the first rail, MPI's by the second or by both. One
of the links of h2 is taken down for three seconds amid the collectives: Slurm's, the one that MPI
uses, one of the two that it uses. The MPIs are those of tests/whole/test_lab_verbs.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from test_lab_verbs import (
    MORE,
    RAILS,
    RDMA,
    SETTINGS,
    SOURCES,
    TESTS,
    called,
    named,
    planned_for,
    ready,
    record,
)
from test_lab_verbs_slurm import STORY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
CUT = r"""
downs() { ssh h2 cat /sys/class/infiniband/rxe$1/ports/1/hw_counters/link_downed; }
cut() { # cut NAME RAIL SETTINGS [OPTION…] PROGRAM
    (
        until [[ $(grep -c ^right said/$1 2>/dev/null) -gt 50 ]]; do sleep 0.2; done
        lab cut h2 3 $2
    ) &
    local second=$(lab packets h1 1) downs=$(downs $2)
    LIMIT=300 job $1 pmi2 "$3" "${@:4}"
    wait
    second=$(($(lab packets h1 1) - second)) downs=$(($(downs $2) - downs))
    local left waited
    for ((waited = 0; waited < 30; waited++)); do # Slurm takes some seconds to tidy up
        left="$(squeue -h | wc -l) $(sinfo -h -o %T,%D)"
        [[ $left != "0 idle,2" ]] || break
        sleep 1
    done
    echo $second $downs $left >said/$1.after
}
"""
# How a job ends that does not go on: the library says so, or, where it waits, our program.
CAUSES = {
    "ch4:ucx": "send completion with error",
    "ch4:ofi": r"hung \w+ ",
    "ch3:mrail": "Got FATAL event port error",
}


@dataclass(frozen=True)
class Cut:
    status: int
    packets: tuple[int, int]  # of h1's first and second adapter
    seconds: int
    right: int
    downs: int  # how often h2's adapter saw its link go down
    left: str  # jobs that are left, and the nodes' states
    said: str


@pytest.fixture(scope="module", params=["", *map(str, MORE)], ids=lambda one: Path(one).name)
def cuts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("cuts")
    mpi = ready(request.param, place)
    device = named(mpi)["Device"]
    planned = planned_for(mpi)
    _, second, both = RAILS[device]
    lines = [
        f"{SETTINGS}{STORY}{CUT}",
        f"cut slurms 0 '{planned} {second}' ./collectives",
        f"cut only 1 '{planned} {second}' ./collectives",
    ]
    if device == "ch4:ofi":  # which takes one rail, and waits
        endless(mpi, place)
        lines += [f"cut timed 1 '{planned} {second}' --time=2 ./endless"]
    else:
        lines += [f"cut both 1 '{planned} {both}' ./collectives"]
    (place / "story.sh").write_text("\n".join(lines) + "\n")
    lab = [TESTS / "lab" / "verbs", "--slurm", "--rails", "2", "--see", str(mpi)]
    done = subprocess.run([*lab, "bash", "story.sh"], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path.stem: read(path) for path in (place / "said").glob("*.counts")}
    if os.environ.get("MVSTACK_TEST_VERBS_RECORD"):
        name = f"{called(mpi)}, srun --mpi=pmi2"
        rows = [asdict(one) | {"mpi": name, "job": f"cut {job}"} for job, one in found.items()]
        for row in rows:
            del row["said"]
        record(name, rows)
    return device, found


def endless(mpi: Path, place: Path) -> None:
    """Compile collectives.c without its limit of 30 s for each collective."""
    text = (SOURCES / "collectives.c").read_text()
    assert "SECONDS = 30" in text
    (place / "endless.c").write_text(text.replace("SECONDS = 30", "SECONDS = 0"))
    words = [mpi / "bin/mpicc", "-O1", "-o", place / "endless", place / "endless.c", "-lm"]
    subprocess.run(words, check=True)


def read(counts: Path) -> Cut:
    """What came of the job whose counts these are."""
    status, first, seconds = map(int, counts.read_text().split())
    second, downs, left = counts.with_suffix(".after").read_text().split(maxsplit=2)
    said = counts.with_suffix("").read_text()
    right = len(re.findall("^right ", said, re.M))
    return Cut(status, (first, int(second)), seconds, right, int(downs), left.strip(), said)


def test_slurms_link_does_not_matter_to_ranks_that_use_another(cuts):
    job = cuts[1]["slurms"]
    assert job.downs == 1 and job.status == 0 and job.right == 705, job.said
    assert job.packets[0] == 0 and job.packets[1] > RDMA


@pytest.mark.parametrize("name", ["only", "both"])
def test_a_cut_link_ends_the_job_with_its_cause_or_it_goes_on(cuts, name: str):
    device, found = cuts
    job = found.get(name) or pytest.skip("it takes one link, whatever it is told")
    assert job.downs == 1 and "wrong" not in job.said and job.right > 50, job.said
    assert job.packets[1] > RDMA // 2
    if not (job.status == 0 and job.right == 705):
        assert job.status != 124 and re.search(f"^.*{CAUSES[device]}", job.said, re.M), job.said
        assert job.right < 705


def test_the_time_limit_of_a_job_ends_ranks_that_wait(cuts):
    job = cuts[1].get("timed") or pytest.skip("its library ends the job")
    assert job.downs == 1 and 50 < job.right < 705 and "wrong" not in job.said, job.said
    assert job.status not in (0, 124) and "DUE TO TIME LIMIT" in job.said, job.said
    assert 100 < job.seconds < 300


def test_nothing_is_left_of_the_jobs(cuts):
    assert {job.left for job in cuts[1].values()} == {"0 idle,2"}
