"""tests/lab/hosts: real MPI between hosts, over a network that is seen, slowed and cut."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from checks_tree import LMOD, mpi_here

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "reframe"))
from fabric import over_tcp  # noqa: E402

pytestmark = pytest.mark.slow

HOSTS = TESTS / "lab" / "hosts"
SOURCES = TESTS / "reframe" / "src"
PATIENCE = 300  # seconds; only for what must end at all
# The network of the lab has TCP alone.
OVER_TCP = {"ch4:ofi": "FI_PROVIDER=tcp", "ch4:ucx": "UCX_TLS=tcp,self,posix"}
# What modules of partitions with an adapter set, where no adapter is.
ADAPTER = {"ch4:ofi": "FI_PROVIDER='verbs;ofi_rxm'", "ch4:ucx": "UCX_TLS=^tcp"}

# Says "begun" once all ranks have talked, talks for some seconds, and counts what was wrong.
TALK = r"""
#include <mpi.h>
#include <stdio.h>
int main(void) {
    int rank, size, sum = 0, wrong = 0;
    static int block[1 << 14];
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double until = MPI_Wtime() + 6;
    for (int i = 0, stop = 0; !stop; i++) {
        for (int k = 0; k < 1 << 14; k++) block[k] = rank ? -1 : i + k;
        MPI_Bcast(block, 1 << 14, MPI_INT, 0, MPI_COMM_WORLD);
        for (int k = 0; k < 1 << 14; k++) wrong += block[k] != i + k;
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != size * (size - 1) / 2;
        if (i == 5 && rank == 0) { printf("begun\n"); fflush(stdout); }
        stop = MPI_Wtime() > until;
        MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    printf("rank %d: %d wrong\n", rank, wrong);
    return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    if os.geteuid():
        pytest.skip("skipped: unreachable: network namespaces need root")
    missing = [one for one in ("ip", "tc", "ssh", "dropbear") if not shutil.which(one, path=path())]
    if missing:
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")
    return mpi_here(tmp_path_factory.mktemp("tree"))


def path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


@pytest.fixture
def hosts(plan, tmp_path):
    """Run lines of shell on the first of some hosts, with the MPI loaded."""

    def run(lines, *options, patience=PATIENCE):
        script = (
            f"source {LMOD}; export MODULEPATH={plan['tree']}/modules/Core\n"
            f"module load mvapich-stack/{plan['release']} {plan['mpi'][0]['module']}\n{lines}"
        )
        return subprocess.run(
            [str(HOSTS), *options, "bash", "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )

    return run


@pytest.fixture
def talking(plan, tmp_path):
    """Lines that start TALK on four hosts as $job and go on when its ranks have talked."""
    (tmp_path / "talk.c").write_text(TALK)
    return (
        f"mpicc -o talk talk.c\n{start(plan, 4, './talk')} >said 2>&1 & job=$!\n"
        "until grep -q begun said || ! kill -0 $job; do sleep 0.1; done\n"
    )


def start(plan, ranks, program, setting=OVER_TCP, each=1):
    """The line that starts ``ranks`` of ``program``, ``each`` on a host while there are hosts."""
    given = setting[plan["mpi"][0]["device"]]
    return f"env {given} mpiexec -launcher ssh -f $LAB_HOSTS -ppn {each} -n {ranks} {program}"


def test_collectives_between_three_hosts_are_right_and_use_the_network(hosts, plan):
    done = hosts(
        f"mpicc -O1 -o all {SOURCES}/collectives.c\n"
        # Debian's MPICH 4.0.2 over UCX may wait in MPI_Finalize for ranks that wait for it
        f"timeout 150 {start(plan, 3, './all few')} || [[ $? == 124 ]] || exit\n"
        "for one in h1 h2 h3; do echo sent $(lab bytes $one); done",
        *("-n", "3"),
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^right ", done.stdout, re.M)) == 225
    assert "wrong" not in done.stdout
    sent = [int(one) for one in re.findall(r"^sent (\d+)$", done.stdout, re.M)]
    assert len(sent) == 3 and min(sent) > 10 << 20


def test_collectives_of_odd_counts_between_four_hosts_are_right(hosts, plan):
    """As many ranks on each host but the last; how long the start of a program takes is printed."""
    counts = (5, 7, 13, 16)
    lines = [f"mpicc -O1 -o all {SOURCES}/collectives.c && mpicc -o world {SOURCES}/world.c"]
    for ranks in counts:
        each = -(-ranks // 4)
        for program in ("world", "all few"):
            run = start(plan, ranks, f"./{program}", each=each)
            lines += [
                f"began=$(date +%s%N); timeout -k 5 250 {run} >said 2>&1 || echo status $?",
                f"echo {program.split()[0]} {ranks}: $(grep -c '^right ' said) right, "
                "$(grep -c wrong said) wrong, $((($(date +%s%N) - began) / 1000000)) ms",
            ]
    done = hosts("\n".join(lines), patience=600)
    print(done.stdout)
    for ranks in counts:
        assert f"all {ranks}: 225 right, 0 wrong" in done.stdout, done.stdout + done.stderr
        (started,) = re.findall(rf"^world {ranks}: .* (\d+) ms$", done.stdout, re.M)
        assert int(started) < 60_000


def test_tcp_between_hosts_is_told_where_another_fabric_was_planned(hosts, plan):
    done = hosts(
        f"mpicc -o identity {SOURCES}/identity.c\n{start(plan, 2, './identity')}", "-n", "2"
    )
    assert done.returncode == 0, done.stderr
    assert {"rank 0 on h1", "rank 1 on h2"} <= set(re.findall(r"rank \d on \w+", done.stdout))
    assert over_tcp(done.stdout, {"provider": ["tcp"]}) == ""
    assert "two nodes, whose fabric is another, go over TCP" in over_tcp(
        done.stdout, {"provider": ["cxi"]}
    )


def test_what_a_module_sets_for_an_adapter_ends_the_program_where_there_is_none(hosts, plan):
    """No program may run over TCP because its adapter is away."""
    done = hosts(
        f"mpicc -o world {SOURCES}/world.c\n{start(plan, 2, './world', ADAPTER)}", "-n", "2"
    )
    assert done.returncode != 0
    assert "sum" not in done.stdout


def test_a_killed_rank_ends_the_job_and_leaves_nobody(hosts, talking):
    done = hosts(
        f"{talking}ssh h3 pkill -9 -x talk; wait $job; echo status $?\n"
        "for one in $(cat $LAB_HOSTS); do ssh $one pgrep -x talk && echo left on $one; done"
    )
    assert re.search(r"^status [1-9]", done.stdout, re.M), done.stdout + done.stderr
    assert "left" not in done.stdout


def test_a_host_that_stays_lost_ends_the_job(hosts, plan, talking):
    """A link that is down says nothing, and a rank that waits for a message sends none, so that
    neither TCP nor MPI finds out: an ssh that looks does, and mpiexec heeds it."""
    mpi = plan["mpi"][0]
    if (mpi["product"], mpi["version"]) != ("mvapich", "4.0"):
        pytest.skip(f"{mpi['module']} has no lost-host.patch: mpiexec waits for ever")
    done = hosts(
        f"export HYDRA_LAUNCHER_EXTRA_ARGS=-oServerAliveInterval=3\n{talking}"
        "lab cut h3; SECONDS=0\n"
        "while kill -0 $job 2>/dev/null && ((SECONDS < 60)); do sleep 0.2; done\n"
        "echo waited $SECONDS; kill -9 $job 2>/dev/null\nwait $job; echo status $?; cat said\n"
        "for one in h1 h2 h4; do ssh $one pgrep -x talk && echo left on $one; done"
    )
    assert "status 255" in done.stdout, done.stdout + done.stderr
    assert "the connection to h3 is lost" in done.stdout
    assert "left" not in done.stdout
    waited = int(re.search(r"^waited (\d+)$", done.stdout, re.M)[1])
    assert 5 < waited < 60  # three times 3 seconds, and what it takes to end them


def test_a_slow_link_is_slow_for_mpi(hosts, plan):
    """100 Mbit/s carry 12.5 MB/s, of which headers take some; the burst of the limit is 64 KB."""
    timed = start(plan, 2, "./ping bandwidth 4096")
    done = hosts(
        f"mpicc -O1 -o ping {SOURCES}/mvstack_pingpong.c\n{timed}",
        *("-n", "2", "--rate", "100mbit"),
    )
    assert done.returncode == 0, done.stderr
    measured = dict(re.findall(r"^(\d+) +([\d.]+)$", done.stdout, re.M))
    assert 6 < float(measured["4096"]) < 13, done.stdout


def test_hosts_are_apart_and_nothing_stays(tmp_path):
    script = "hostname; ssh h2 'hostname; touch /dev/shm/two; ip -br link'; ls /dev/shm; exit 5"
    done = subprocess.run(
        [str(HOSTS), "-n", "2", "--folder", str(tmp_path / "logs"), "sh", "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert done.stdout.split()[:2] == ["h1", "h2"]
    assert "two" not in done.stdout.split()
    assert {"h1.log", "h2.log"} <= {one.name for one in (tmp_path / "logs").iterdir()}
    assert not list(tmp_path.glob("lab-*"))


def test_each_host_has_cores_of_its_own(tmp_path):
    if os.geteuid() or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("skipped: unreachable: needs root, and two processors")
    say = "sed -n 's/^Cpus_allowed_list:\\s*//p' /proc/self/status"
    one = [
        str(HOSTS),
        "-n",
        "2",
        "--own-cores",
        "sh",
        "-c",
        f'{say}; ssh h1 "{say}"; ssh h2 "{say}"',
    ]
    done = subprocess.run(one, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    here, first, second = done.stdout.split()
    assert here == first != second


@pytest.mark.parametrize("words", [[], ["-n", "33", "true"], ["-n", "two", "true"], ["--x"]])
def test_it_says_how_it_is_used(words):
    done = subprocess.run([str(HOSTS), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "tests/lab/hosts [-n HOSTS]" in done.stdout


def test_slurm_starts_a_step_on_every_host(tmp_path):
    if os.geteuid() or not shutil.which("slurmd", path=path()):
        pytest.skip("skipped: unreachable: needs root, and Slurm (slurm-wlm)")
    slurm = f"{TESTS}/slurm/loopback --hosts $LAB_HOSTS -c 2 --logs {tmp_path}/logs --"
    done = subprocess.run(
        [str(HOSTS), "-n", "3", "sh", "-c", f"{slurm} srun -N 3 -n 6 --mpi=pmi2 hostname"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["h1", "h1", "h2", "h2", "h3", "h3"]
