"""The verdict on Charm++'s megatest: what it printed on two ranks, and the same spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import charmpp  # noqa: E402

# Of 8.0.0, with the names of its tests left out.
TEXT = """Charm++> Running in non-SMP mode: 2 processes (PEs)
Megatest is running on 2 nodes 2 processors. 
{}
All tests completed, exiting
[Partition 0][Node 0] End of program
""".format("\n".join(f"test {n}: initiated [x]\ntest {n}: completed (0.00 sec)" for n in range(55)))  # noqa: W291


def test_output_really_seen_is_right():
    assert charmpp.complaints(TEXT, 2) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"nodes 2 proc", "nodes 1 proc", "processors is 1.0, expected 2"),
        (r"test 15: completed.*\n", "", "tests that began and did not end is ['15']"),
        (r"test 54: completed", "test 54: late", "did not end is ['54']"),
        (r"All tests.*\n", "", "megatest did not come to its end"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, TEXT, count=1)
    assert count == 1
    assert any(complaint in said for said in charmpp.complaints(spoilt, 2))
