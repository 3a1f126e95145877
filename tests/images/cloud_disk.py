"""What an emulated cloud gives as the disk of an image: an instance's file tree, on a disk.

The emulators copy nothing when an image is made. The tree is taken when its disk is asked for, when
nothing runs in the instance any more but its sshd; one process asks and another makes, by files.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from mvstack.image.base import Base, fill_disk

NAME = "cloud-disk.raw"
LIMIT = 300  # seconds


def given(disk: Path) -> Path:
    """``disk``, once it is there: called by an emulator that is asked for it."""
    begin = time.monotonic()
    while not disk.exists():
        disk.with_suffix(".wanted").touch()
        if time.monotonic() - begin > LIMIT:
            raise TimeoutError(f"nobody made {disk}")
        time.sleep(0.1)
    return disk


class CloudDisk:
    """Use as a context manager. ``left`` are files that the build forgot, by name.

    ``tree`` is Instance.disk, of ``gb`` GB; it starts where its base has a kernel (see base.py).
    """

    def __init__(self, tree: Path, folder: Path, gb: int) -> None:
        self.tree, self.raw, self.gb = tree, folder / NAME, gb
        self.left: dict[str, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> CloudDisk:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def forget(self) -> None:
        """Make it anew when it is asked for again."""
        self.raw.unlink(missing_ok=True)

    def _watch(self) -> None:
        wanted = self.raw.with_suffix(".wanted")
        while not self._ended.wait(0.1):
            if wanted.exists():
                wanted.unlink()
                self._make()

    def _make(self) -> None:
        for name, text in self.left.items():
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / name).write_text(text)
        (self.tree / "boot/extlinux").mkdir(parents=True, exist_ok=True)
        part = self.raw.with_suffix(".part")
        fill_disk(part, self.tree, Base("bookworm", self.gb), part.with_suffix(".log"))
        part.rename(self.raw)
        for name in self.left:
            (self.tree / name).unlink()


def sparse_disk(disk: Path, blocks: int) -> bytes:
    """Let ``disk`` hold that many blocks of 512 KiB, each beside an empty one; what it holds."""
    block = 512 << 10
    text = b"".join(
        (b"%7d\n" % index) * (block // 8) + bytes(block) for index in range(1, blocks + 1)
    )
    disk.write_bytes(text)
    return text
