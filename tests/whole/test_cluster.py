"""`mvstack cluster run`: machines started from the QEMU image with a Slurm over them, for real.

MVSTACK_TEST_CLUSTER_IMAGES is the folder with the image of qemu-debian12/cluster, made by
`mvstack image build qemu-debian12/cluster --no-test --images DIR`. Processors are emulated where
KVM does not work. What is wrong on purpose must end the job with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mvstack.image import store, testing, virtual
from mvstack.image.cluster import Place, make_cluster
from mvstack.image.flow import Asked
from mvstack.image.vm import Machine
from mvstack.support.home import DATA
from mvstack.support.processes import run
from mvstack.support.progress import Progress

NAME = "qemu-debian12/cluster"
IMAGES = os.environ.get("MVSTACK_TEST_CLUSTER_IMAGES", "")
SUBMIT = "cd first && sbatch --wait --output=%s %s; s=$?; cat %s; exit $s"

# a second munged with a key of its own, and one of its credentials taken to the other node
OTHER_KEY = """
sudo install -d /run/other && sudo sh -c 'cd /run/other && head -c 96 /dev/urandom > key &&
chmod 400 key && munged --force --key-file=/run/other/key --socket=/run/other/socket \\
  --pid-file=/run/other/pid --log-file=/run/other/log --seed-file=/run/other/seed'
munge -n -S /run/other/socket | srun -N 1 -w node-2 unmunge; munge -n | srun -N 1 -w node-2 unmunge
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not IMAGES, reason="MVSTACK_TEST_CLUSTER_IMAGES is not set"),
]


def by_command(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mvstack", "cluster", "run", NAME, "--images", IMAGES]
    return subprocess.run([*command, *words], capture_output=True, text=True, cwd=DATA)


def changed(head: Machine, name: str, old: str, new: str) -> tuple[int, str]:
    """Submit first-job.sh with ``old`` replaced, as ``name``; its status and what it said."""
    head.run(
        f"cd first && sed 's|{old}|{new}|' first-job.sh > {name} && ! cmp -s first-job.sh {name}"
    )
    done = head.run(SUBMIT % (f"{name}.out", name, f"{name}.out"), limit=1200)
    return done.status, done.text + done.errors


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """One start of two machines; status and words of all that was run on them."""
    _, image = Asked(NAME).plan("cluster")
    cluster = make_cluster(NAME, image, 2, Place())
    disk = testing.whole(
        store.find(Path(IMAGES), image.name, None, ("candidate", "tested", "published"))
    )
    found: dict[str, tuple[int, str]] = {}

    def use(head: Machine) -> int:
        lines: list[str] = []
        first: Callable[[Machine], int] = virtual.first_job(cluster, lines.append)
        found["first"] = first(head), "\n".join(lines)
        print("\n".join(lines))

        def ask(name: str, line: str) -> None:
            done = head.run(line, limit=600)
            found[name] = done.status, done.text + done.errors

        ask("units", "systemctl --failed --no-legend --plain")
        ask(
            "nodes",
            "srun -N 2 --ntasks-per-node=1 sh -c 'hostname; ulimit -l; stat -f -c %T /home'",
        )
        ask("homes", "cd first && srun -N 2 --ntasks-per-node=1 ls world.out")
        # each rank a world of its own
        found["no PMI"] = changed(head, "none.sh", "--mpi=pmi2", "--mpi=none")
        # all ranks on one node, where two were asked for
        found["one node"] = changed(head, "one.sh", "^srun ", "srun -N 1 --overcommit ")
        # who has another key is none of this cluster's
        ask("other key", OTHER_KEY)
        ask(
            "stopped",
            "sudo scontrol update nodename=node-2 state=down reason=test; sinfo -h -t down",
        )
        ask("refused", "srun -N 2 --immediate=5 hostname")
        return 0

    virtual.run_cluster(cluster, disk, tmp_path_factory.mktemp("cluster"), use, Progress())
    return found


def test_the_first_job_passes(seen: dict[str, tuple[int, str]]) -> None:
    status, said = seen["first"]
    assert status == 0, said
    assert "world: 4 ranks see each other, on 2 nodes" in said
    assert "collectives: 705 of 705 are right" in said
    assert "OSU MPI Latency Test" in said
    assert "first job: passed in" in said


def test_both_nodes_are_as_they_should_be(seen: dict[str, tuple[int, str]]) -> None:
    assert seen["units"] == (0, "")
    status, said = seen["nodes"]
    assert status == 0
    assert sorted(said.split()) == sorted(
        ["node-1", "node-2", "unlimited", "unlimited", "ext2/ext3", "nfs"]
    )
    assert seen["homes"][1].split() == ["world.out"] * 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("no PMI", "FAILED: srun did not start the ranks"),
        ("one node", "FAILED: 4 of 4 ranks see each other, on 1 of 2 nodes"),
    ],
)
def test_what_is_wrong_ends_the_job(seen: dict[str, tuple[int, str]], fault: str, why: str) -> None:
    status, said = seen[fault]
    assert status == 1, said
    assert why in said


def test_another_key_is_refused(seen: dict[str, tuple[int, str]]) -> None:
    said = seen["other key"][1]
    assert said.count("Invalid credential") == 1
    assert said.count("Success (0)") == 1


def test_a_node_that_is_down_is_not_computed_on(seen: dict[str, tuple[int, str]]) -> None:
    assert "node-2" in seen["stopped"][1]
    assert seen["refused"][0] != 0


def test_a_command_and_its_exit_status() -> None:
    """`mvstack cluster run … COMMAND`: its output and status pass through; nothing is left."""
    done = by_command("--nodes", "3", "--", "sinfo -h -o %D; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["3"]
    left = run(["pgrep", "-f", "qemu-debian12-cluster"]).text
    assert not left
