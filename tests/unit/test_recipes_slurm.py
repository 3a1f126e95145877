"""When the stand-alone tests of the recipes let srun start ranks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "spack-repo"))

from spack_repo.mvapich_stack.slurm import could_start


@pytest.mark.parametrize(
    ("sinfo", "could"),
    [
        ("debug* up idle\n", True),
        ("gpu up allocated\ncpu* up mixed\n", True),
        ("cpu* up allocated\n", False),
        ("cpu* up idle*\n", False),  # the node does not respond
        ("cpu* down idle\n", False),
        ("gpu up idle\ncpu* up allocated\n", False),  # not where srun would go
        ("", False),
    ],
)
def test_it_needs_a_free_node_that_responds_in_the_default_partition(
    monkeypatch: pytest.MonkeyPatch, sinfo: str, could: bool
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert could_start(sinfo) is could


def test_inside_an_allocation_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert could_start("cpu* up allocated\n")
