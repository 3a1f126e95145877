"""The verdict on the file that IOR's ranks wrote together, word by word."""

from __future__ import annotations

import functools
import re
import struct
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

from apps import ior  # noqa: E402

# The lines that judge, as 4.0.0 printed them, and the check's own last line.
SAID = """IOR-4.0.0: MPI Coordinated Test of Parallel I/O
tasks               : 2
clients per node    : 2
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     304.45     41804      0.000144    256.00     64.00      0.004160   0.000574   0.000194   0.004927   0   
read      7499       141183     0.000042    256.00     64.00      0.000027   0.000170   0.000004   0.000200   0   

Summary of all tests:
write         304.45     304.45     304.45       0.00    4871.20    4871.20    4871.20       0.00    0.00493         NA            NA     0      2   2    1   0     1        1         0    0      3   262144    65536       1.5 MPIIO      0
read         7498.76    7498.76    7498.76       0.00  119980.09  119980.09  119980.09       0.00    0.00020         NA            NA     0      2   2    1   0     1        1         0    0      3   262144    65536       1.5 MPIIO      0
Finished            : Sun Nov 22 14:06:52 2026

file: 1572864 bytes, wrong words 0
"""  # noqa: E501, W291


def test_output_really_seen_is_right():
    assert ior.complaints(SAID, 2) == []
    assert ior.figures(SAID) == {"write": (304.45, "MiB/s"), "read": (7498.76, "MiB/s")}
    assert ior.figures("") == {}


@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"wrong words 0", "wrong words 8192", "wrong words in it"),
        (r"1572864 bytes", "786432 bytes", "bytes of the file"),
        (r"file: .*", "", "bytes of the file, wrong words in it is (nan, nan)"),
        (r"Finished", "WARNING: Incorrect data on read (3 errors found).\nFinished", "3 errors"),
        (r"tasks               : 2", "tasks               : 1", "tasks is 1"),
        (r"^read +7498.76 .*", "", "tasks of the read is nan"),
        (r"^write .* NA .*", "", "tasks of the write is nan"),
    ],
)
def test_each_wrong_result_is_refused(pattern, replacement, complaint):
    spoilt, count = re.subn(pattern, replacement, SAID, count=1, flags=re.M)
    assert count == 1
    found = ior.complaints(spoilt, 2)
    assert any(complaint in said for said in found), found


@functools.cache
def written(ranks: int) -> bytes:
    """The file as the ranks' blocks lie in it, one after another, segment by segment."""
    transfers = [
        ior.expected(rank, (segment * ranks + rank) * ior.BLOCK + number * ior.TRANSFER)
        for segment in range(ior.SEGMENTS)
        for rank in range(ranks)
        for number in range(ior.TRANSFERS)
    ]
    return b"".join(struct.pack(f"<{len(words)}Q", *words) for words in transfers)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_right_file_has_no_wrong_word(ranks):
    assert len(written(ranks)) == ranks * ior.SEGMENTS * ior.BLOCK
    assert ior.wrong(written(ranks), ranks) == 0


def test_one_byte_is_one_wrong_word():
    data = bytearray(written(2))
    data[ior.BLOCK + 12345] ^= 1
    assert ior.wrong(bytes(data), 2) == 1


def test_blocks_of_two_ranks_changed_about_are_wrong():
    data = written(2)
    mixed = data[ior.BLOCK : 2 * ior.BLOCK] + data[: ior.BLOCK] + data[2 * ior.BLOCK :]
    assert ior.wrong(mixed, 2) == 2 * ior.BLOCK // 8


def test_words_that_are_not_there_are_wrong():
    words = len(written(2)) // 8
    assert ior.wrong(b"", 2) == words
    assert ior.wrong(written(2)[:-1], 2) == 1
    assert ior.wrong(written(2)[: ior.BLOCK], 2) == words - ior.BLOCK // 8
    assert ior.wrong(bytes(len(written(2))), 2) > 0.99 * words
