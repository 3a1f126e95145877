"""Verdicts on OpenSHMEM, GASNet and OMB-Py: output really seen, and the same spoilt."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import gasnet, omb_py, openshmem  # noqa: E402

# Sandia OpenSHMEM 1.5.2, over MPICH 4.0.2 and libfabric 1.17.
SHMEM = """\
openshmem 2 PEs, 2 ranks, 4099 numbers, 200 tickets
wrong: put 0, get 0, tickets 0, MPI 0
put 3579.863 us
"""


def test_openshmem_really_seen_is_right():
    assert openshmem.complaints(SHMEM, 2) == []
    assert openshmem.figures(SHMEM) == {"put": (3579.863, "us")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 PEs", "1 PEs"),
        ("2 ranks", "1 ranks"),
        ("4099", "4098"),
        ("put 0", "put 1"),
        ("get 0", "get 3"),
        ("tickets 0", "tickets 1"),
        ("MPI 0", "MPI 2"),
        (SHMEM, ""),
    ],
)
def test_openshmem_spoilt_is_told(old, new):
    assert openshmem.complaints(SHMEM.replace(old, new), 2)


# GASNet 2024.5.0, mpi-conduit over MPICH 4.0.2.
GASNET = """\
gasnet 2 processes, 2 ranks, 4099 numbers, 200 messages
wrong: put 0, get 0, messages 0, MPI 0
put 25.912 us
"""


def test_gasnet_really_seen_is_right():
    assert gasnet.complaints(GASNET, 2) == []
    assert gasnet.figures(GASNET) == {"put": (25.912, "us")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2 processes", "1 processes"),
        ("2 ranks", "1 ranks"),
        ("4099", "4098"),
        ("200", "199"),
        ("put 0", "put 1"),
        ("get 0", "get 3"),
        ("messages 0", "messages 1"),
        ("MPI 0", "MPI 2"),
        (GASNET, ""),
    ],
)
def test_gasnet_spoilt_is_told(old, new):
    assert gasnet.complaints(GASNET.replace(old, new), 2)


def table(sizes: list[int], heading: str = "# OMB Python MPI Allgather Test") -> str:
    rows = "".join(f"{size:<10d}{12.5 + size / 1000:18.2f}\n" for size in sizes)
    return f"{heading}\n# Size (B)      Latency (us)\n{rows}"


def test_omb_py_has_a_time_for_each_size():
    text = table(omb_py.SIZES)
    assert omb_py.complaints(text, 2) == []
    assert omb_py.figures(text)["allgather_1B"] == (12.5, "us")
    assert omb_py.complaints(table(omb_py.SIZES[:-1]), 2)
    assert omb_py.complaints(table(omb_py.SIZES, "# OMB Python MPI Latency Test"), 2)
    assert omb_py.complaints(text.replace("12.50", "0.00"), 2)
    assert omb_py.complaints("", 2)
    assert omb_py.figures("") == {}
