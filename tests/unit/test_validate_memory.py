"""What the check Memory makes of what its program prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reframe"))

import memory


def test_each_node_is_read():
    text = "triad 134 MB, 34 MB of caches, 4 ranks\nnode n1 18.59 GB/s\nnode n-2.x 27 GB/s\n"
    assert memory.read(text) == {"n1": 18.59, "n-2.x": 27}


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        ([200], ""),
        ([200, 150], ""),
        ([200, 149], "n1 has 149 GB/s of memory, 0.74 of the other (200)"),
        ([100, 100, 300], ""),  # the fast one is the odd one
        ([199, 100, 201, 200], "n1 has 100 GB/s of memory, 0.50 of the median of the others (200)"),
        # both, and not the one that is left
        ([200, 90, 210, 100, 205], "n1 has 90 GB/s of memory, 0.45 of the median of the others "
         "(200); n3 has 100 GB/s of memory, 0.50 of the median of the others (200)"),
    ],
)  # fmt: skip
def test_slow_nodes_are_named(speeds, said):
    assert memory.slow({f"n{at}": speed for at, speed in enumerate(speeds)}) == said
