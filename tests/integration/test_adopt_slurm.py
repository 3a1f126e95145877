"""`mvstack adopt` on a real Slurm of several nodes: one is down, one hangs, two are alike."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_slurm_loopback import needs_slurm, processes_with
from test_slurm_loopback import run as loopback

from mvstack.discover import look
from mvstack.discover.nodes import read

TOP = Path(__file__).resolve().parents[2]
CAPTURES = TOP / "tests" / "data" / "discover"
ADOPT = [sys.executable, "-P", "-m", "mvstack", "adopt", "lab"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TOP / "src")}
# Prints the job that a person submits where nothing can be run from here.
LINE = """
import sys
from mvstack.discover.nodes import by_hand
from mvstack.model.load import load_policy
slurm = load_policy().schedulers["slurm"].look
print(by_hand(slurm, "debug", [sys.executable, "-P", "-m", "mvstack", "discover", "--json"]))
"""
PARTITIONS = ["PartitionName=debug Nodes=n4", "PartitionName=broken Nodes=n2"]
PARTITIONS += ["PartitionName=HUNG Nodes=n3"]


def mvstack(*words: object) -> subprocess.CompletedProcess[str]:
    command = [*ADOPT[:4], *map(str, words)]
    return subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The site's folder after one `adopt` on a Slurm with troubles, and what it printed."""
    needs_slurm()
    site = tmp_path_factory.mktemp("site")
    script = f"""
        scontrol update nodename=n2 state=down reason=test
        pid=$(cat $(dirname $SLURM_CONF)/slurmd-n3.pid)
        kill -STOP $pid
        {shlex.join(ADOPT)} --to {site} --limit 5
        status=$?
        cd {site}
        eval "$({shlex.join([sys.executable, "-c", LINE])})"
        for try in $(seq 200); do
            [ -z "$(squeue --noheader --partition=debug)" ] && break
            sleep 0.3
        done
        squeue --noheader --format=%T.%j
        kill -CONT $pid
        exit $status
    """
    lines = [word for line in PARTITIONS for word in ("--line", line)]
    done = loopback("-n", "4", *lines, "--", "sh", "-c", script, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    return site, done.stdout


def test_what_answers_is_described_and_what_does_not_is_named(slurm: tuple[Path, str]) -> None:
    site, said = slurm
    text = (site / "systems" / "lab.yaml").read_text()
    here = look()
    assert f"cores: {here.cores} " in text and "launcher: srun" in text and "pmi: pmi2" in text
    assert 'scheduler_options: ["--partition=all"]' in text
    assert "fabric: tcp" in text  # several nodes: no shared memory of one machine
    assert "debug: its nodes are like those of all: left out" in said
    assert "  broken:" in text and "  hung:" in text and '["--partition=HUNG"]' in text
    assert "not found: fill in (srun: job" in text
    assert "HUNG: srun: a node of HUNG did not answer in 20 s" in said
    assert "sbatch --partition=broken --nodes=1" in said
    assert "--replace --node broken=broken.json --node HUNG=HUNG.json" in said


def test_the_job_for_a_person_writes_what_adopt_reads(slurm: tuple[Path, str]) -> None:
    machine, why = read((slurm[0] / "debug.json").read_bytes())
    assert machine and not why
    assert (machine.cores, machine.scheduler) == (look().cores, "slurm")


def test_no_job_is_left_behind(slurm: tuple[Path, str]) -> None:
    left = [x for x in slurm[1].splitlines() if ".mvstack-adopt" in x]
    assert all(x.startswith(("COMPLETING", "CANCELLED")) for x in left), left
    assert not processes_with("mvstack-adopt-")


def test_check_reports_each_unknown_with_what_to_do(slurm: tuple[Path, str]) -> None:
    done = mvstack("--site", slurm[0], "check", "lab")
    assert done.returncode == 3
    for field in ("cores", "target", "fabric", "gpu"):
        assert f"partitions: broken: {field}: nothing is given" in done.stderr
        assert f"partitions: hung: {field}: nothing is given" in done.stderr
    assert "partitions: all" not in done.stderr


def test_files_from_nodes_of_other_hardware_complete_it(
    slurm: tuple[Path, str], tmp_path: Path
) -> None:
    """The nodes' own `discover --json`, and a capture, where nothing can be run from here."""
    site = tmp_path / "site"
    site.mkdir()
    node = tmp_path / "node.json"
    node.write_text(look(CAPTURES / "gpu-v100.yaml").model_dump_json())
    words = ("adopt", "lab", "--to", site, "--builder", "spack", "--json")
    files = ("--node", f"gpu={node}", "--node", f"cpu={CAPTURES / 'azure-hbv4.yaml'}")
    done = mvstack(*words, *files)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["partitions"] == ["gpu", "cpu"] and told["did_not_answer"] == {}
    text = (site / "systems" / "lab.yaml").read_text()
    assert "gpu: nvidia" in text and "builder: spack" in text
    again = mvstack(*words, *files)
    assert again.returncode == 4 and "exists already" in again.stdout + again.stderr
    assert (site / "systems" / "lab.yaml").read_text() == text
    assert mvstack(*words, *files, "--replace").returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--node", "gpu"], "PARTITION=FILE"),
        (["--node", "gpu=/nowhere.json"], "no such file"),
        (["--node", "gpu=/etc"], "give the file itself, not a folder"),
        (["--to", "/etc/passwd"], "this is a file, not a folder"),
        (["--node", f"gpu={TOP / 'tests' / 'data' / 'ci-changes.yaml'}"], "not a capture"),
    ],
)
def test_a_wrong_file_is_told_and_nothing_is_written(
    tmp_path: Path, words: list[str], expected: str
) -> None:
    done = mvstack("adopt", "lab", "--to", tmp_path, *words)
    assert done.returncode == 3 and expected in done.stderr
    assert not (tmp_path / "systems").exists()
