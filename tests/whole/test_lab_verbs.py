"""tests/lab/verbs: MPI over real verbs between emulated machines, by the adapters' packet counters.

The MPI is that of QEMU's image (tests/images/release.py). MVSTACK_TEST_VERBS_MPI names prefixes of
more, built with hydra for x86_64_v3 or less: the emulated processors have no AVX-512. For each the
machines are started once, and everything is run in one story.

With MVSTACK_TEST_VERBS_RECORD=1 what came of each goes into tests/lab/verbs-record.jsonl, in the
place of its older lines: status, seconds, the adapters' packets, bytes over TCP by rank, how many
collectives were right, and the provider or the transports that the library named.
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
from fabric import fault, over_tcp, transports  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MORE = [Path(one) for one in os.environ.get("MVSTACK_TEST_VERBS_MPI", "").split()]
RECORD = TESTS / "lab" / "verbs-record.jsonl"
LAST_SEND = TESTS / "lab" / "reproducers" / "last_send.c"
# What makes libraries name what they use; MVAPICH2's mrail does not say which adapter.
SAYS = "MPIR_CVAR_DEBUG_SUMMARY=1 UCX_LOG_LEVEL=info"
# How it is sent over TCP; verbs are mrail's only network.
TCP = {"ch4:ofi": "FI_PROVIDER=tcp", "ch4:ucx": "UCX_TLS=tcp,self,sysv"}
# What lets a message of more than 64 bytes wait for its receiver.
WAITS = {"ch4:ofi": "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD=64", "ch4:ucx": "UCX_RNDV_THRESH=64"}
PROGRAMS = ("identity", "collectives", "dialogue")
RDMA = 1000  # packets of 4,096 bytes: 32 MiB are some 4,000 of each way, a start less than 100

SETTINGS = """
# a completion queue of soft RoCE is small: MPICH's MPI_Init fails with "OFI EP enable failed"
export FI_UNIVERSE_SIZE=2 FI_OFI_RXM_{MSG_TX,MSG_RX,TX,RX}_SIZE=128
# UCX 1.13.1 takes no datagram of soft RoCE that came to an IPv4 address: "Endpoint timeout"
export UCX_IB_GID_INDEX=0
# MVAPICH2 knows adapters by their names, and soft RoCE's is none of them: say ConnectX
export MV2_FORCE_HCA_TYPE=21
"""
STORY = r"""
once() { # once NAME: waits until that job is in the midst of its collectives
    until [[ $(grep -c ^right said/$1 2>/dev/null) -gt 50 ]]; do sleep 0.2; done
}
job() { # job NAME SETTINGS PROGRAM…: what it says and its status, packets of RDMA and seconds
    # LIMIT: 705 collectives took 39 s at a load of 10, where 225 took 31
    local before=$(lab packets h1) began=$(date +%s) status=0
    timeout ${LIMIT:-120} env $2 $mpi/bin/mpiexec -launcher ssh -f $LAB_HOSTS -ppn 1 -n 2 "${@:3}" \
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
    device: str

    @property
    def named(self) -> list[str]:
        """The provider, or the transports, that the library says it uses."""
        found = re.findall(r"^libfabric provider: (\S+)", self.said, re.M)
        return sorted({*found, *transports(self.said)})

    @property
    def right(self) -> int:
        """How many collectives were right."""
        return len(re.findall("^right ", self.said, re.M))

    @property
    def tcp(self) -> list[int]:
        """Bytes that each rank's TCP sockets carried, of 32 MiB, as the kernel counted."""
        return [int(one) for one in re.findall(r"(\d+) of \d+ bytes over TCP", self.said)]


def ready(prefix: str, place: Path, *more: Path) -> Path:
    """The MPI of ``prefix``, or of QEMU's image, its programs in ``place``; skips without tools."""
    if os.geteuid():
        pytest.skip("needs root: the machines have a network of their own")
    missing = [one for one in ("qemu-system-x86_64", "mmdebstrap", "ip") if not shutil.which(one)]
    if missing:
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")
    mpi = Path(prefix) if prefix else next(installed().glob("software/MPICH/*"))
    (place / "said").mkdir()
    for source in (*(SOURCES / f"{one}.c" for one in PROGRAMS), *more):
        words = [mpi / "bin/mpicc", "-O1", "-DTURNS=60", "-o", place / source.stem, source, "-lm"]
        subprocess.run(words, check=True)
    return mpi


@pytest.fixture(scope="module", params=["", *map(str, MORE)], ids=lambda one: Path(one).name)
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    place = tmp_path_factory.mktemp("verbs")
    mpi = ready(request.param, place, LAST_SEND)
    device, planned, tcp = named(mpi)["Device"], planned_for(mpi), TCP.get(named(mpi)["Device"])
    patched = named(mpi)["Library"] == "MVAPICH"
    lines = [
        f"mpi={mpi}\n{SETTINGS}{STORY}",
        f"job planned '{planned} {SAYS}' ./identity",
        f"job tcp '{tcp} {SAYS}' ./identity" if tcp else "",
        f"job alone '{SAYS}' ./identity",
        f"job ended '{planned}' ./last_send",
        f"job turns '{planned}' ./dialogue" if patched else "",
        f"job waits '{planned} {WAITS.get(device)}' ./dialogue" if patched else "",
        f"LIMIT=400 job right '{planned}' ./collectives",
        f"(once killed; ssh h2 pkill -9 -x collectives) & job killed '{planned}' ./collectives",
        # last: where it ends by an error, soft RoCE carries no later job
        f"(once cut; lab cut h2 3) & job cut '{planned}' ./collectives",
    ]
    (place / "story.sh").write_text("\n".join(lines) + "\n")
    lab = [TESTS / "lab" / "verbs", "--see", str(mpi), "bash", "story.sh"]
    done = subprocess.run(lab, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {}
    for counts in (place / "said").glob("*.counts"):
        status, packets, seconds = map(int, counts.read_text().split())
        said = counts.with_suffix("").read_text()
        found[counts.stem] = Job(status, packets, seconds, said, device)
    name = called(mpi)
    rows = [
        {"mpi": name, "job": job, **asdict(one)}
        | {"tcp": one.tcp, "right": one.right, "named": one.named}
        for job, one in sorted(found.items())
    ]
    for row in rows:
        del row["said"], row["device"]
        print(json.dumps(row))
    if os.environ.get("MVSTACK_TEST_VERBS_RECORD"):
        record(name, rows)
    return found


def named(mpi: Path) -> dict[str, str]:
    """An MPI's library (MPICH, MVAPICH or MVAPICH2), version and device."""
    said = subprocess.run([mpi / "bin/mpichversion"], capture_output=True, text=True).stdout
    words = dict(re.findall(r"^M\w+ (Version|Device)\s*:\s*(\S+)", said, re.M))
    return {"Library": re.match("[A-Z0-9]+", said)[0], **words}


def planned_for(mpi: Path) -> str:
    """What makes it use the adapter: as our modules set it."""
    device = named(mpi)["Device"]
    if device == "ch4:ofi" and not re.search("=> .*libfabric", linked(mpi)):
        return "FI_PROVIDER=mverbs;ofi_ucr"  # of the libfabric in MVAPICH
    provider = load_policy().fabrics["roce"].libfabric.provider
    return {"ch4:ucx": "UCX_TLS=^tcp", "ch3:mrail": "MV2_USE_RoCE=1"}.get(
        device, f"FI_PROVIDER={provider}"
    )


def called(mpi: Path) -> str:
    """What the record calls it."""
    return "{Library} {Version} {Device}, ".format(**named(mpi)) + planned_for(mpi)


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
    jobs = {row["job"] for row in rows}
    old = [(line, json.loads(line)) for line in lines]
    kept = [line for line, one in old if one["mpi"] != name or one["job"] not in jobs]
    new = [json.dumps(row | when, sort_keys=True) for row in rows]
    RECORD.write_text("\n".join(sorted([*kept, *new])) + "\n")


def test_as_the_policy_sets_it_everything_goes_over_rdma(jobs):
    job = jobs["planned"]
    assert job.status == 0 and len(job.tcp) == 2, job.said
    assert max(job.tcp) < 1 << 20 and job.packets > RDMA


# What the library may name where messages go by the adapter, and what its forced TCP is.
BY_ADAPTER = {"provider": ["verbs", "mverbs"], "transports": ["rc_verbs"]}
BY_TCP = {"provider": ["tcp"], "transports": ["tcp"]}


def test_the_library_names_what_the_counters_saw(jobs):
    device = jobs["planned"].device
    if device == "ch3:mrail":
        pytest.skip("mrail does not say which network it uses")
    assert fault(jobs["planned"].said, device, BY_ADAPTER) == ""
    assert fault(jobs["tcp"].said, device, BY_TCP) == ""
    assert "planned was" in fault(jobs["tcp"].said, device, BY_ADAPTER)
    alone = jobs["alone"]
    assert (fault(alone.said, device, BY_ADAPTER) == "") == (alone.packets > RDMA), alone.named


def test_tcp_is_told_where_rdma_was_there(jobs):
    job = jobs.get("tcp") or pytest.skip("it has no TCP between machines")
    assert job.status == 0 and min(job.tcp) > 30 << 20 and job.packets < RDMA, job.said
    assert "between two nodes" in over_tcp(job.said, {"provider": ["verbs;ofi_rxm"]})


def test_left_alone_the_kernels_count_and_the_adapters_agree(jobs):
    job = jobs["alone"]
    assert job.status == 0 and len(job.tcp) == 2, job.said
    assert (max(job.tcp) < 1 << 20) == (job.packets > RDMA)


def test_a_rank_whose_last_act_is_a_message_ends(jobs):
    """Patch finalize-waits-for-all: without it rank 1 waits for minutes over UCX's RC."""
    job = jobs["ended"]
    took = [float(one) for one in re.findall(r"MPI_Finalize took ([\d.]+) s", job.said)]
    assert job.status == 0 and len(took) == 2 and max(took) < 10, job.said


@pytest.mark.parametrize("name", ["turns", "waits"])
def test_each_message_goes_to_its_own_receive(jobs, name):
    """Patches acks-in-turn and matched-probe-of-segments: without these two change places."""
    job = jobs.get(name) or pytest.skip("only MVAPICH has the patches")
    assert job.status == 0 and "right dialogue" in job.said, job.said
    assert job.packets > RDMA


def test_collectives_are_right(jobs):
    job = jobs["right"]
    assert job.status == 0, job.said
    assert job.right == 705 and "wrong" not in job.said
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
    assert job.right > 50 and job.seconds < 60, "it ended before, or long after, the kill"


TWO_RAILS = """
for rails in "${@:2}"; do
    before=($(lab packets h1 0) $(lab packets h1 1))
    timeout 60 env $rails $1/bin/mpiexec -launcher ssh -f $LAB_HOSTS \\
        -ppn 1 -n 2 ./identity >said </dev/null || exit
    [[ $(grep -c "bytes over TCP" said) == 2 ]] || exit
    echo sent $(($(lab packets h1 0) - before[0])) $(($(lab packets h1 1) - before[1]))
done
"""
# How a program is told the first rail, the second, and both.
RAILS = {
    "ch3:mrail": [f"MV2_IBA_HCA={rails}" for rails in ("rxe0", "rxe1", "rxe0:rxe1")],
    "ch4:ofi": [
        "FI_VERBS_DEVICE_NAME=rxe0",
        "FI_VERBS_DEVICE_NAME=rxe1",
        "MPIR_CVAR_CH4_OFI_MAX_NICS=2 MPIR_CVAR_CH4_OFI_ENABLE_MULTI_NIC_STRIPING=1",
    ],
    "ch4:ucx": ["UCX_NET_DEVICES=rxe0:1", "UCX_NET_DEVICES=rxe1:1", "UCX_MAX_RNDV_RAILS=2"],
}


@pytest.mark.parametrize("device", RAILS)
def test_messages_take_the_rails_that_they_are_told(device: str, tmp_path: Path) -> None:
    mpi = next((one for one in MORE if device == named(one)["Device"]), None)
    if not mpi:
        pytest.skip(f"no {device} among MVSTACK_TEST_VERBS_MPI")
    words = ["-O1", "-o", tmp_path / "identity", SOURCES / "identity.c", "-lm"]
    subprocess.run([mpi / "bin/mpicc", *words], check=True)
    planned = planned_for(mpi)
    story = f"{SETTINGS}\nexport '{planned}'\n{TWO_RAILS}"
    lab = [TESTS / "lab" / "verbs", "--rails", "2", "--see", mpi]
    lab += ["bash", "-c", story, "two", mpi, *RAILS[device]]
    done = subprocess.run(lab, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sent = [[int(a), int(b)] for a, b in re.findall(r"^sent (\d+) (\d+)$", done.stdout, re.M)]
    first, second, both = sent
    if os.environ.get("MVSTACK_TEST_VERBS_RECORD"):
        record(called(mpi), [{"mpi": called(mpi), "job": "rails", "rails": sent}])
    assert first[0] > RDMA and first[1] == 0
    assert second[0] == 0 and second[1] > RDMA
    if device == "ch4:ofi":  # counts rails of PCI alone, which soft RoCE's are not
        assert both[0] > RDMA and both[1] == 0
    else:
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


def test_a_machine_that_ends_ends_the_lab(tmp_path):
    """Its ssh waited for ever for a machine that was killed."""
    ready("", tmp_path)
    kill = "ssh h2 true && pkill -9 -f 'init=/machine lab=2' && ssh h1 sleep 900"
    lab = [TESTS / "lab" / "verbs", "--outside", "bash", "-c", kill]
    done = subprocess.run(lab, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert done.returncode == 125 and "h2 has ended" in done.stderr, done.stderr


def test_a_machine_that_does_not_come_up_says_why(tmp_path):
    if os.geteuid():
        pytest.skip("needs root: the machines have a network of their own")
    fake = tmp_path / "qemu-system-x86_64"
    fake.write_text("#!/bin/sh\necho no memory for a machine >&2\nexit 1\n")
    fake.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    lab = [TESTS / "lab" / "verbs", "true"]
    done = subprocess.run(
        lab, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 125, done.stdout + done.stderr
    assert "h1 does not come up" in done.stderr and "no memory for a machine" in done.stderr
