"""How numbers are written for people: every one with its unit, times as one would say them.

Also the cleaning of text that comes from outside: what a log, a hostname or a JSON file holds must
neither break a page nor steer a terminal.
"""

import math
import unicodedata

NOTHING = "—"
_PRETTY_UNITS = {"us": "µs", "usec": "µs", "usecs": "µs", "sec": "s", "MBytes/sec": "MB/s"}
_BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_KEPT = "\n\t"
# Format characters reorder or hide what is read (bidirectional overrides, zero-width marks).
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str) -> str:
    """``text`` with control, formatting and unpaired surrogate characters shown as U+FFFD."""
    if text.isprintable():  # most is, and `check` asks for each text of each file
        return text
    return "".join(
        char if char in _KEPT or unicodedata.category(char) not in _UNPRINTABLE else "\ufffd"
        for char in text
    )


def one_line(text: str, width: int = 0) -> str:
    """``text`` cleaned, white space folded, cut to ``width`` characters with … (0: not cut)."""
    folded = " ".join(clean(text).split())
    return folded if not width or len(folded) <= width else folded[: max(width - 1, 0)] + "…"


def count(total: int, noun: str) -> str:
    """``1 check``, ``3 checks``."""
    return f"{total:,} {noun}" if total == 1 else f"{total:,} {noun}s"


def unit_name(unit: str) -> str:
    """The unit as it is printed: ``us`` is µs, ``MBytes/sec`` is MB/s."""
    return _PRETTY_UNITS.get(unit, unit)


def number(value: float | None) -> str:
    """Three significant digits, thousands separated: 0.324, 99.1, 10,812."""
    if value is None or not math.isfinite(value):
        return NOTHING
    size = abs(float(f"{value:.3g}"))  # rounded first: 99.96 has the digits of 100
    if size >= 1e15:
        return f"{value:.3g}"
    if size >= 100:
        return f"{value:,.0f}"
    if value == int(value):
        return f"{value:.0f}"
    if size >= 0.01:
        return f"{value:.{2 - math.floor(math.log10(size))}f}"
    return f"{value:.3g}"


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit: ``10,812 MB/s``; a dash when there is no number."""
    text = number(value)
    return text if text == NOTHING or not unit else f"{text} {unit_name(unit)}"


def duration(seconds: float | None) -> str:
    """A time as one would say it: 0.42 s, 42 s, 18 min 24 s, 1 h 02 min."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return NOTHING
    if seconds < 0.995:
        return f"{seconds:.2g} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def size(total: int | None) -> str:
    """A message size in bytes: 8 B, 1 KiB, 4 MiB; a size that is no round number stays in B."""
    if total is None:
        return NOTHING
    for factor, name in _BINARY:
        if total >= factor and total % factor == 0:
            return f"{total // factor:,} {name}"
    return f"{total:,} B"
