"""Bring a cloud's disk here as a raw file: only what it holds, many pieces at a time."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Piece = TypeVar("Piece")
Note = Callable[[str], None]
TOGETHER = 16  # pieces at a time: one alone waits for the network, not for the disk


def bring(
    to: Path,
    size: int,
    pieces: Sequence[Piece],
    read: Callable[[Piece], tuple[int, bytes]],
    note: Note,
) -> None:
    """Write ``to``, of ``size`` bytes; ``read`` gives the offset and the bytes of a piece.

    What no piece holds is zero, and takes no room. Raises what ``read`` raises.
    """
    with to.open("wb") as stream:
        stream.truncate(size)
        file = stream.fileno()

        def one(piece: Piece) -> int:
            offset, data = read(piece)
            if offset + len(data) > size:
                raise ValueError(f"a piece ends at {offset + len(data)}, and the disk at {size}")
            for begin in range(0, len(data), 1 << 16):  # blocks of zeros stay holes
                part = data[begin : begin + (1 << 16)]
                if part.count(0) != len(part):
                    os.pwrite(file, part, offset + begin)
            return len(data)

        done = 0
        with ThreadPoolExecutor(TOGETHER) as pool:
            try:
                for length in pool.map(one, pieces):
                    done += length
                    note(f"{done / 1e9:.1f} GB of the disk")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
