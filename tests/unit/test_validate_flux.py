"""What a check's job asks of Flux, and where Flux's Python bindings are looked for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reframe"))

from flux_job import words


@pytest.mark.parametrize(
    ("tasks", "per_node", "gpu", "asks"),
    [
        (4, None, "none", ["--nslots=4"]),
        (2, 1, "none", ["--nslots=2", "--nodes=2"]),
        (8, 4, "amd", ["--nslots=8", "--nodes=2", "--gpus-per-slot=1"]),
    ],
)
def test_a_check_gets_the_slots_nodes_and_gpus_that_it_needs(tasks, per_node, gpu, asks):
    job = SimpleNamespace(workdir="/w", stdout="o", stderr="e", script_filename="job.sh")
    check = SimpleNamespace(
        job=job,
        num_tasks=tasks,
        num_tasks_per_node=per_node,
        time_limit=60.0,
        mpi={"gpu": gpu},
        current_partition=SimpleNamespace(access=["--queue=pdebug"]),
    )
    made = words(check)
    assert made[:3] == ["flux", "batch", "--dry-run"]
    assert made[3 : 3 + len(asks)] == asks and not made[3 + len(asks)].startswith(("--n", "--g"))
    assert made[3 + len(asks) :] == [
        *("--output=/w/o", "--error=/w/e", "--cwd=/w", "--time-limit=60.0s"),
        *("--queue=pdebug", "--wrap", "/bin/bash", "job.sh"),
    ]
