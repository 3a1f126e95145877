"""Ranks that share cores while others are idle; tests/integration/test_reframe_mpi.py runs them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reframe"))

from crowding import crowded, processors

# four cores of two hardware threads each
JOB = " ".join(f"{one}={one % 4}" for one in range(8))


def row(rank: int, mine: str, host: str = "a", job: str = JOB) -> str:
    of = " ".join(f"{one}={one % 4}" for one in sorted(processors(mine)))
    return f"rank {rank} on {host}: {of} of {job}\n"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (row(0, "0") + row(1, "1"), ""),
        (row(0, "0-7") + row(1, "0-7"), ""),
        (row(0, "0-1") + row(1, "0-1"), ""),  # two of them for two ranks
        (row(0, "0") + row(1, "0"), "ranks 0, 1 on a may run on core 0 alone"),
        (row(0, "0") + row(1, "4"), "ranks 0, 1 on a may run on core 0 alone"),  # one core
        (row(0, "0,4") + row(1, "0,4"), "while the job has cores 1, 2, 3 idle"),
        (row(0, "0") + row(1, "0") + row(2, "0-3"), ""),  # nobody knows that 1 to 3 are idle
        (row(0, "0-1") + row(1, "1") + row(2, "0"), "ranks 0, 1, 2 on a may run on cores 0, 1 al"),
        (row(0, "2") + row(1, "1") + row(2, "1"), "ranks 1, 2 on a"),
        (row(0, "0") + row(1, "0", "b"), ""),  # one rank a host
        (row(0, "0") + row(1, "1") + row(2, "0", "b") + row(3, "0", "b"), "ranks 2, 3 on b"),
        (row(0, "0", job="0=0 4=0") + row(1, "4", job="0=0 4=0"), ""),  # the job has no more
        ("job on a: 0,4\n" + row(0, "0") + row(1, "0"), ""),  # nor here, by its script
        ("job on a: 0-3\n" + row(0, "0") + row(1, "0"), "ranks 0, 1 on a"),
        ("job on b: 0\n" + row(0, "0") + row(1, "0"), "ranks 0, 1 on a"),
    ],
)
def test_who_shares_a_core(said: str, wrong: str) -> None:
    found = crowded(said)
    assert wrong in found and bool(found) == bool(wrong)


def test_a_list_of_the_kernel() -> None:
    assert processors("0-2,5,8-9") == {0, 1, 2, 5, 8, 9}
