"""The verdict on MPICH's own tests: each of them said No Errors, once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import mpich_testsuite  # noqa: E402

# As 4.0.2's programs print it, those in Fortran with another blank.
GOOD = "launcher /mpi/bin/mpiexec\n" + "".join(
    f"test {program}\n{'  ' if program[0] == 'f' else ' '}No Errors\n"
    for program in mpich_testsuite.PROGRAMS
)


def test_output_really_seen_is_right():
    assert mpich_testsuite.complaints(GOOD + "job-script-ended\n", 2) == []


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"(allred2\n) No Errors", r"\1 Found 3 errors", "coll/allred2 did not say No Errors once"),
        (r"(allred2\n) No Errors", r"\1 No Errors\n No Errors", "coll/allred2 did not say"),
        (r"(wintest\n) No Errors\n", r"\1", "rma/wintest did not say No Errors once, but: nothing"),
        (r"(wintest\n) No Errors", r"\1Abort(1) on node 0", "but: Abort(1) on node 0"),
        (
            r"(distgraph1\n) No Errors",
            r"\1ended with status 124",
            "distgraph1 did not end within 60 s",
        ),
        (r"(allred2\n) No Errors", r"\1 No Errors\nended with status 1", "ended with status 1"),
        (r"test coll/allred2\n No Errors\n", "", "programs that ran is"),
        (r"test [\s\S]*", "", "programs that ran is []"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, GOOD, count=1)
    assert count == 1
    found = mpich_testsuite.complaints(spoilt, 2)
    assert any(complaint in said for said in found), found
