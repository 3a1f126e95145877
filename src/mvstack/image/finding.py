"""One thing that an audit found."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Finding:
    """``what`` is at ``path`` of the image, ``why`` it matters, and whether the audit ``fails``."""

    path: str
    what: str
    why: str
    fails: bool = True
