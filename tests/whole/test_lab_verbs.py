"""tests/lab/verbs: MPI over real verbs between emulated machines, by the adapters' packet counters.

The MPI is that of QEMU's image (tests/images/release.py). MVSTACK_TEST_VERBS_MPI names prefixes of
more, built with hydra for x86_64_v3 or less: the emulated processors have no AVX-512. For each the
machines are started once, and everything is run in one story.

With MVSTACK_TEST_VERBS_RECORD=1 what came of each goes into tests/lab/verbs-record.jsonl, in the
place of its older lines: status, seconds, the adapters' packets, bytes over TCP by rank, and how
many collectives were right.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from images.release import installed

from mvstack.model.load import load_policy

TESTS = Path(__file__).resolve().parents[1]
SOURCES = TESTS / "reframe" / "src"
sys.path.insert(0, str(TESTS / "reframe"))
from fabric import over_tcp  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MORE = [Path(one) for one in os.environ.get("MVSTACK_TEST_VERBS_MPI", "").split()]
RECORD = TESTS / "lab" / "verbs-record.jsonl"
RDMA = 1000  # packets of 4,096 bytes: 32 MiB are some 4,000 of each way, a start less than 100

STORY = r"""
# a completion queue of soft RoCE is small: MPICH's MPI_Init fails with "OFI EP enable failed"
export FI_UNIVERSE_SIZE=2 FI_OFI_RXM_{MSG_TX,MSG_RX,TX,RX}_SIZE=128
# UCX 1.13.1 takes no datagram of soft RoCE that came to an IPv4 address: "Endpoint timeout"
export UCX_IB_GID_INDEX=0
# MVAPICH2 knows adapters by their names, and soft RoCE's is none of them: say ConnectX
export MV2_FORCE_HCA_TYPE=21
job() { # job NAME SETTINGS PROGRAM…: what it says and its status, packets of RDMA and seconds
    local before=$(lab packets h1) began=$(date +%s) status=0
    timeout 120 env $2 $mpi/bin/mpiexec -launcher ssh -f $LAB_HOSTS -ppn 1 -n 2 "${@:3}" \
        >said/$1 2>&1 </dev/null || status=$?
    echo $status $(($(lab packets h1) - before)) $(($(date +%s) - began)) >said/$1.counts
}
"""


@dataclass(frozen=True)
class Job:
    status: int
    packets: int
    seconds: int
    said: str

    @property
    def right(self) -> int:
        """How many collectives were right."""
        return len(re.findall("^right ", self.said, re.M))

    @property
    def tcp(self) -> list[int]:
        """Bytes that each rank's TCP sockets carried, of 32 MiB, as the kernel counted."""
        return [int(one) for one in re.findall(r"(\d+) of \d+ bytes over TCP", self.said)]


@pytest.fixture(scope="module", params=["", *map(str, MORE)], ids=lambda one: Path(one).name)
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    if os.geteuid():
        pytest.skip("needs root: the machines have a network of their own")
    missing = [one for one in ("qemu-system-x86_64", "mmdebstrap", "ip") if not shutil.which(one)]
    if missing:
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")
    mpi = Path(request.param) if request.param else next(installed().glob("software/MPICH/*"))
    place = tmp_path_factory.mktemp("verbs")
    (place / "said").mkdir()
    device = subprocess.run([mpi / "bin/mpichversion"], capture_output=True, text=True).stdout
    for name in ("identity", "collectives"):
        source = SOURCES / f"{name}.c"
        subprocess.run([mpi / "bin/mpicc", "-O1", "-o", place / name, source, "-lm"], check=True)
    roce = load_policy().fabrics["roce"]
    planned, tcp = f"FI_PROVIDER={roce.libfabric.provider}", "FI_PROVIDER=tcp"
    if "ch4:ucx" in device:
        planned, tcp = "UCX_TLS=^tcp", "UCX_TLS=tcp,self,sysv"
    elif "ch4:ofi" in device and not re.search("=> .*libfabric", linked(mpi)):
        planned = "FI_PROVIDER=mverbs;ofi_ucr"  # of the libfabric in MVAPICH
    elif "ch3:mrail" in device:
        planned, tcp = "MV2_USE_RoCE=1", ""  # verbs are its only network
    lines = [
        f"mpi={mpi}\n{STORY}",
        f"job planned '{planned}' ./identity",
        f"job tcp '{tcp}' ./identity" if tcp else "",
        "job alone A=1 ./identity",
        f"job right '{planned}' ./collectives few",
        f"(sleep 6; lab cut h2 3) & job cut '{planned}' ./collectives",
        f"(sleep 8; ssh h2 pkill -9 -x collectives) & job killed '{planned}' ./collectives",
    ]
    (place / "story.sh").write_text("\n".join(lines) + "\n")
    lab = [TESTS / "lab" / "verbs", "--see", str(mpi), "bash", "story.sh"]
    done = subprocess.run(lab, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for counts in (place / "said").glob("*.counts"):
        status, packets, seconds = map(int, counts.read_text().split())
        found[counts.stem] = Job(status, packets, seconds, counts.with_suffix("").read_text())
    words = dict(re.findall(r"^M\w+ (Version|Device)\s*:\s*(\S+)", device, re.M))
    library = re.match("[A-Z0-9]+", device)[0]  # MPICH, MVAPICH or MVAPICH2
    name = f"{library} {words['Version']} {words['Device']}, {planned}"
    rows = [
        {"mpi": name, "job": job, **asdict(one), "tcp": one.tcp, "right": one.right}
        for job, one in sorted(found.items())
    ]
    for row in rows:
        del row["said"]
        print(json.dumps(row))
    if os.environ.get("MVSTACK_TEST_VERBS_RECORD"):
        record(name, rows)
    return found


def linked(mpi: Path) -> str:
    """What the MPI's library is linked with."""
    library = next(mpi.glob("lib*/libmpi.so"))
    return subprocess.run(["ldd", library], capture_output=True, text=True).stdout


def record(name: str, rows: list[dict[str, object]]) -> None:
    """Put the rows of an MPI into the record, with the date and the commit."""
    git = ["git", "-C", str(TESTS), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    when = {"date": datetime.now(UTC).date().isoformat(), "commit": commit}
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    kept = [line for line in lines if json.loads(line)["mpi"] != name]
    new = [json.dumps(row | when, sort_keys=True) for row in rows]
    RECORD.write_text("\n".join(sorted([*kept, *new])) + "\n")


def test_as_the_policy_sets_it_everything_goes_over_rdma(jobs):
    job = jobs["planned"]
    assert job.status == 0 and len(job.tcp) == 2, job.said
    assert max(job.tcp) < 1 << 20 and job.packets > RDMA


def test_tcp_is_told_where_rdma_was_there(jobs):
    job = jobs.get("tcp") or pytest.skip("it has no TCP between machines")
    assert job.status == 0 and min(job.tcp) > 30 << 20 and job.packets < RDMA, job.said
    assert "between two nodes" in over_tcp(job.said, {"provider": ["verbs;ofi_rxm"]})


def test_left_alone_the_kernels_count_and_the_adapters_agree(jobs):
    job = jobs["alone"]
    assert job.status == 0 and len(job.tcp) == 2, job.said
    assert (max(job.tcp) < 1 << 20) == (job.packets > RDMA)


def test_collectives_are_right(jobs):
    job = jobs["right"]
    assert job.status == 0, job.said
    assert job.right == 225 and "wrong" not in job.said
    assert job.packets > RDMA


def test_a_cut_link_gives_no_wrong_value_and_is_not_silent(jobs):
    """It is down for three seconds in mid-run: soft RoCE sends again, UCX ends the program, or
    what was sent is lost and the check names the collective that hangs."""
    job = jobs["cut"]
    right = job.right
    assert "wrong" not in job.said and job.packets > RDMA and right > 0
    named = re.search(r"^hung \w+ ", job.said, re.M)
    assert (job.status == 0 and right == 705) or named or job.status not in (0, 124), job.said


def test_a_killed_rank_ends_the_job(jobs):
    job = jobs["killed"]
    assert job.status not in (0, 124), job.said
    assert 6 < job.seconds < 60, "it ended before, or long after, the rank was killed"


TWO_RAILS = """
export MV2_USE_RoCE=1 MV2_FORCE_HCA_TYPE=21
for rails in rxe0 rxe1 rxe0:rxe1; do
    before=($(lab packets h1 0) $(lab packets h1 1))
    MV2_IBA_HCA=$rails timeout 100 $1/bin/mpiexec -launcher ssh -f $LAB_HOSTS \\
        -ppn 1 -n 2 ./identity >said </dev/null || exit
    echo sent $(($(lab packets h1 0) - before[0])) $(($(lab packets h1 1) - before[1]))
done
"""


def test_mrail_takes_the_rails_that_it_is_told(tmp_path: Path) -> None:
    mpi = next((one for one in MORE if (one / "bin" / "mpiname").exists()), None)
    if not mpi:
        pytest.skip("no MVAPICH2 among MVSTACK_TEST_VERBS_MPI")
    words = ["-O1", "-o", tmp_path / "identity", SOURCES / "identity.c", "-lm"]
    subprocess.run([mpi / "bin/mpicc", *words], check=True)
    lab = [TESTS / "lab" / "verbs", "--rails", "2", "--see", mpi]
    lab += ["bash", "-c", TWO_RAILS, "two", mpi]
    done = subprocess.run(lab, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sent = re.findall(r"^sent (\d+) (\d+)$", done.stdout, re.M)
    first, second, both = ([int(one) for one in rails] for rails in sent)
    assert first[0] > RDMA and first[1] == 0
    assert second[0] == 0 and second[1] > RDMA
    assert min(both) > RDMA and max(both) < 3 * RDMA, both  # half of the packets each


@pytest.mark.parametrize(
    ("words", "folder", "status", "said"),
    [
        (["--nope", "true"], "/tmp", 2, "tests/lab/verbs [-n MACHINES]"),
        (["--see", "/nowhere", "true"], "/tmp", 2, "/nowhere"),
        (["-n", "9", "true"], "/tmp", 2, "4 at most"),
        (["true"], "/", 125, "a folder below /"),
    ],
)
def test_what_it_cannot_do_it_refuses_at_once(words, folder, status, said):
    if os.geteuid():
        pytest.skip("needs root: the machines have a network of their own")
    lab = [TESTS / "lab" / "verbs", *words]
    done = subprocess.run(lab, cwd=folder, capture_output=True, text=True, timeout=20)
    assert done.returncode == status and said in done.stdout + done.stderr
