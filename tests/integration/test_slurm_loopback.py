"""tests/slurm/loopback: a real Slurm of several nodes on one machine, nothing left after it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOOPBACK = Path(__file__).resolve().parents[1] / "slurm" / "loopback"
# Seconds in which the slowest machine starts or stops a Slurm; only for what must end at all.
PATIENCE = 120


def needs_slurm(*more):
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    programs = ("slurmctld", "slurmd", "srun", *more)
    missing = [one for one in programs if not shutil.which(one, path=path)]
    if missing:
        pytest.skip(f"skipped: unreachable: not installed: {', '.join(missing)}")


def run(*words, environment=None):
    return subprocess.run(
        [sys.executable, str(LOOPBACK), *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )


def processes_with(text):
    """Process ids whose command line or environment holds a text."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            seen = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue
        if text.encode() in seen:
            found.append(int(folder.name))
    return found


def gone(text):
    """Whether no process holds the text any more, within PATIENCE."""
    until = time.monotonic() + PATIENCE
    while processes_with(text):
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def test_a_job_runs_on_every_node():
    needs_slurm()
    done = run(
        "-n", "3", "--", "srun", "-N", "3", "--mpi=pmi2", "sh", "-c", "echo $SLURMD_NODENAME"
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["n1", "n2", "n3"]


def test_each_node_serves_its_ranks_with_pmix():
    needs_slurm()
    listed = run("--", "srun", "--mpi=list")
    if "pmix" not in listed.stdout + listed.stderr:
        pytest.skip("skipped: unreachable: this Slurm has no plugin for PMIx")
    done = run("-n", "2", "--", "srun", "-N", "2", "--mpi=pmix", "printenv", "PMIX_RANK")
    if "can not load PMIx library" in done.stderr:
        pytest.skip("skipped: unreachable: no libpmix.so (libpmix-dev), which Slurm's plugin loads")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["0", "1"]


def test_the_exit_status_is_the_commands():
    needs_slurm()
    assert run("--", "sh", "-c", "exit 7").returncode == 7
    done = run("--", "no-such-command")
    assert done.returncode == 127
    assert "no-such-command" in done.stderr


def test_only_the_loopback_interface_is_listened_on(tmp_path):
    needs_slurm()
    if not shutil.which("ss"):
        pytest.skip("skipped: unreachable: ss is not installed")
    done = run("--", "ss", "-ltnpH")
    listening = [line.split()[3] for line in done.stdout.splitlines() if "slurm" in line]
    assert listening
    assert all(one.startswith("127.") for one in listening)


# What sacct says is written a moment after the job has ended.
ACCOUNTED = """
sbatch -W -N 2 --job-name=told --wrap 'srun hostname; exit 3' >&2
for one in 1 2 3 4 5 6 7 8 9; do
    sacct -X -n -P --format=jobname,state,exitcode,nnodes | grep . | tee $SLURM_CONF.said
    grep -q FAILED $SLURM_CONF.said && break
    sleep 1
done
sacct -n -P --format=jobname,state,ntasks
ss -ltnpH
"""


def test_sacct_shows_a_job_that_ran_there(tmp_path):
    needs_slurm("slurmdbd", "mariadbd", "ss")
    logs = tmp_path / "logs"
    done = run("-n", "2", "--accounting", "--logs", str(logs), "--", "sh", "-c", ACCOUNTED)
    assert "\ntold|FAILED|3:0|2\n" in "\n" + done.stdout, done.stdout + done.stderr
    assert "\nhostname|COMPLETED|2\n" in done.stdout
    listening = [line.split() for line in done.stdout.splitlines() if line.startswith("LISTEN")]
    assert any("slurmdbd" in words[-1] for words in listening)
    assert not any("mariadbd" in words[-1] for words in listening), "it has a socket of its own"
    ours = [words[3] for words in listening if "slurm" in words[-1]]
    assert all(one.startswith("127.") for one in ours), ours
    assert gone(str(logs))


def test_without_accounting_sacct_says_that_there_is_none():
    needs_slurm()
    done = run("--", "sacct")
    assert done.returncode != 0 and "accounting storage is disabled" in done.stderr


def test_logs_are_kept_where_they_are_wanted(tmp_path):
    needs_slurm()
    logs = tmp_path / "logs"
    assert run("--logs", str(logs), "--", "true").returncode == 0
    assert {"slurm.conf", "slurmctld.log", "slurmd-n1.log"} <= {one.name for one in logs.iterdir()}
    assert gone(str(logs))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_after_a_signal(tmp_path, number):
    needs_slurm()
    logs, mark = tmp_path / "logs", tmp_path / "started"
    process = subprocess.Popen(
        [
            *(sys.executable, str(LOOPBACK), "-n", "2", "--logs", str(logs), "--"),
            *("srun", "-n", "2", "sh", "-c", f"touch {mark}; sleep 1000"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until = time.monotonic() + PATIENCE
    while not mark.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert mark.exists()
    process.send_signal(number)
    process.wait(timeout=PATIENCE)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    # Daemons and ranks alike know the folder: SLURM_CONF is in it.
    assert gone(str(logs))


def test_without_slurm_the_error_says_what_to_install(tmp_path):
    # A PATH with Python alone; /usr/sbin is looked into as well, so Slurm must not be there.
    if shutil.which("slurmctld", path="/usr/sbin:/sbin"):
        shutil.copytree(LOOPBACK.parent, tmp_path / "slurm")
        copy = tmp_path / "slurm" / "loopback"
        copy.write_text(copy.read_text().replace(":/usr/sbin:/sbin", ""))
    else:
        copy = LOOPBACK
    done = subprocess.run(
        [sys.executable, str(copy), "--", "true"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
        timeout=PATIENCE,
    )
    assert done.returncode == 125
    assert "slurmctld is not installed: apt-get install slurmctld" in done.stderr


def test_without_slurmdbd_the_error_says_what_to_install(tmp_path):
    needs_slurm()
    if shutil.which("slurmdbd", path="/usr/bin:/usr/sbin:/sbin"):
        pytest.skip("slurmdbd is installed")
    done = run("--accounting", "--", "true")
    assert done.returncode == 125
    assert "slurmdbd is not installed: apt-get install slurmdbd mariadb-server" in done.stderr


def test_daemons_that_do_not_start_are_quoted(tmp_path):
    needs_slurm()
    # A controller that refuses: its own words must reach the user.
    bad = tmp_path / "slurmctld"
    bad.write_text("#!/bin/sh\necho 'no licence for this' >&2\nexit 3\n")
    bad.chmod(0o755)
    done = run("--", "true", environment={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 125
    assert "slurmctld ended with 3" in done.stderr
    assert "no licence for this" in done.stderr
