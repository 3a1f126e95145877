"""IOR: what ranks write together through MPI-IO is in the file, word by word, and is read back."""

import re
from pathlib import Path

import reframe as rfm
from reframe.core.builtins import parameter, run_before

import judging
from app_mixin import AppMixin

FILE, SEED = "shared.ior", 20261122
TRANSFER, TRANSFERS, SEGMENTS = 65536, 4, 3  # bytes, of a block, of the file
BLOCK = TRANSFER * TRANSFERS
# of the summary, the rate in MiB/s and the number of ranks
ROW = r"^{} +([\d.]+) .* +0 +(\d+) +\d+ +1 +0 +1 .* MPIIO +0$"


@rfm.simple_test
class Ior(rfm.RunOnlyRegressionTest, AppMixin):
    """A file written collectively is what IOR's rule says, and is read back alike."""

    software = "IOR"
    tags = {"app", "nightly", "ior"}
    ranks = parameter([1, 2, 4])

    @run_before("run")
    def prepare(self):
        sizes = ["-t", str(TRANSFER), "-b", str(BLOCK), "-s", str(SEGMENTS)]
        # Written and compared, read and compared (by ranks of another node than wrote it, where
        # there are several), and kept.
        does = ["-w", "-W", "-r", "-R", "-C", "-k", "-c"]
        data = ["-l", "offset", "-G", str(SEED)]
        self.trace_loader("ior", "-a", "MPIIO", *does, *data, *sizes, "-o", FILE)

    def answer(self):
        """What IOR said, and how many words of the file are not what was to be written."""
        text = super().answer()
        path = Path(self.stagedir, FILE)
        data = path.read_bytes() if path.exists() else b""
        return f"{text}\nfile: {len(data)} bytes, wrong words {wrong(data, self.num_tasks)}\n"


def expected(rank, offset):
    """The words of 8 bytes of the transfer that ``rank`` writes at ``offset`` of the file.

    IOR counts words from its seed, with the rank in the upper half; the first of every 512 is a
    multiple of the offset, modulo 2^32 [IOR 4.0.0, src/utilities.c, DATA_OFFSET].
    """
    words = [SEED + number for number in range(TRANSFER // 8)]
    words[::512] = [offset * (k + 1) % 2**32 for k in range(len(words[::512]))]
    return [rank << 32 | word for word in words]


def wrong(data, ranks):
    """How many words of the file's bytes ``data`` are not what ``ranks`` ranks should write."""
    count = 0
    for offset in range(0, SEGMENTS * ranks * BLOCK, TRANSFER):
        found = data[offset : offset + TRANSFER]
        words = memoryview(found[: len(found) // 8 * 8]).cast("Q").tolist()
        wanted = expected(offset // BLOCK % ranks, offset)
        count += sum(one != other for one, other in zip(words, wanted, strict=False))
        count += len(wanted) - len(words)
    return count


def complaints(text, ranks):
    """What is wrong with what IOR printed and with the file that it left."""
    found = judging.equal("tasks", judging.number(r"^tasks +: (\d+)$", text), ranks)
    for operation in ("write", "read"):
        _, tasks = judging.numbers(ROW.format(operation), text, 2)
        found += judging.equal(f"tasks of the {operation}", tasks, ranks)
    # IOR counts its errors only in a warning, and goes on.
    found += [line for line in text.splitlines() if re.match("(WARNING|ERROR)", line)]
    said = judging.numbers(r"^file: (\d+) bytes, wrong words (\d+)$", text, 2)
    size = ranks * SEGMENTS * BLOCK
    return found + judging.equal("bytes of the file, wrong words in it", said, (size, 0))


def figures(text):
    """The rates of a file of a few MB, opening and closing in them."""
    rates = (judging.numbers(ROW.format(one), text, 2)[0] for one in ("write", "read"))
    return judging.finite({"write": "MiB/s", "read": "MiB/s"}, rates)
