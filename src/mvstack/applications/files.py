"""The size of what is installed."""

from __future__ import annotations

import os
from pathlib import Path


def megabytes(folder: Path) -> int | None:
    """Of all files below ``folder``, in millions of bytes; None where there is no such folder."""
    if not folder.is_dir():
        return None
    size = 0
    for place, _, names in os.walk(folder):
        size += sum((Path(place) / name).lstat().st_size for name in names)
    return round(size / 1e6)
