"""Read what benchmarks print: OSU Micro-Benchmarks, Intel MPI Benchmarks, our own program.

Every reader takes the output and returns ``{bytes: value}``: us for latency and allreduce, MB/s
(10^6 bytes) for bandwidth. One that finds no figure, or finds the benchmark saying that it failed,
raises :class:`ValueError` with what to look at.
"""

import math
import re
from statistics import median

MEASURES = {"latency": "us", "bandwidth": "MB/s", "allreduce": "us"}
# Column of IMB's table that holds the measure, by its heading.
_IMB = {
    "latency": ("PingPong", "t[usec]"),
    "bandwidth": ("Uniband", "Mbytes/sec"),
    "allreduce": ("Allreduce", "t_avg[usec]"),
}
# What each prints once, before its figures.
_TABLE = {"osu": r"^# Size\s", "imb": r"^# Benchmarking ", "own": r"^# mvstack_pingpong "}
_OSU = {"latency": "Latency", "bandwidth": "Bandwidth", "allreduce": "Latency"}


def read(kind, text, measure):
    """The figures of ``measure`` in ``text``, printed by a benchmark of ``kind``."""
    tables = len(re.findall(_TABLE[kind], text, re.M))
    if tables > 1:
        raise ValueError(
            f"the benchmark ran {tables} times side by side: its ranks are worlds of their own; "
            f"see the check WorldSize"
        )
    figures = {"osu": osu, "imb": imb, "own": own}[kind](text, measure)
    if not figures:
        raise ValueError(f"no figure of {measure} in the output of the {kind} benchmark")
    bad = {size: value for size, value in figures.items() if not value > 0}
    if bad:
        raise ValueError(f"{measure} of {bad} ({MEASURES[measure]}): a figure must be above zero")
    return figures


def osu(text, measure):
    """OMB 5 to 7: a heading ``# Size  Avg Latency(us)  …`` and rows, perhaps with Validation."""
    if re.search(r"^\d+[ \t].*\bFail[ \t]*$", text, re.M):
        raise ValueError("OSU's own validation says Fail: data arrived changed")
    if not re.search(rf"^# Size\s.*{_OSU[measure]}", text, re.M):
        raise ValueError(f"no heading of OSU's {measure} test in the output")
    rows = re.findall(r"^(\d+)[ \t]+([\d.]+)(?:[ \t].*)?$", text, re.M)
    return {int(size): float(value) for size, value in rows}


def imb(text, measure):
    """IMB-MPI1: the table after ``# Benchmarking <name>``; a size that timed out is an error."""
    name, heading = _IMB[measure]
    table = re.search(rf"# Benchmarking {name}\s*\n(.*?)(?:\n\s*\n|\Z)", text, re.S)
    if not table:
        raise ValueError(f"no table of IMB's {name} in the output")
    if "time-out" in table[1]:
        raise ValueError(f"IMB's {name} ran out of the time it may take for one message size")
    figures = {}
    columns = None
    for line in table[1].splitlines():
        words = line.split()
        if "#bytes" in words:
            columns = words
        elif columns and len(words) == len(columns) and words[0].isdigit() and int(words[0]) > 0:
            figures[int(words[0])] = float(words[columns.index(heading)])
    return figures


def own(text, measure):
    """src/mvstack_pingpong.c: ``# mvstack_pingpong <measure>`` and rows ``bytes value``."""
    if f"# mvstack_pingpong {measure}" not in text:
        raise ValueError(f"no table of mvstack_pingpong's {measure} in the output")
    rows = re.findall(r"^(\d+) ([\d.]+)$", text, re.M)
    return {int(size): float(value) for size, value in rows}


def gain(text, measure):
    """How many times as fast tuned rounds are as plain ones: the median, and that of each round.

    And the spread: by what factor a plain round usually differs from the plain round before it.
    Each is the geometric mean over sizes. ``text`` has ``round plain``, a benchmark's output,
    ``round tuned``, the next, and so on; what follows ``round last`` is no round.
    """
    found = _rounds(text, measure)
    power = 1 if MEASURES[measure] == "us" else -1

    def faster(new, old):
        return math.exp(power * sum(math.log(old[x] / new[x]) for x in old) / len(old))

    every = list(map(faster, found["tuned"], found["plain"]))
    steps = map(faster, found["plain"][1:], found["plain"])
    return median(every), every, median(max(step, 1 / step) for step in steps)


def medians(text, measure):
    """``{"plain": {bytes: value}, "tuned": …}`` of what :func:`gain` reads: medians."""
    return {
        way: {size: median(one[size] for one in rounds) for size in rounds[0]}
        for way, rounds in _rounds(text, measure).items()
    }


def _rounds(text, measure):
    """The figures of each plain and of each tuned round."""
    before, *rounds = re.split(r"^round (plain|tuned|last)$", text, flags=re.M)
    kind = re.search(r"^benchmark (\w+)", before, re.M)[1]
    found = {"plain": [], "tuned": []}
    for way, part in zip(rounds[::2], rounds[1::2], strict=True):
        if way != "last":
            found[way].append(read(kind, part, measure))
    return found


def slower(found, every, spread):
    """Whether what :func:`gain` found is a loss: in each round, and by more than the spread.

    Settings that change nothing are taken for one once in about 200 times (seven rounds).
    """
    return max(every) < 1 and found * spread < 1


def title(kind, text):
    """The benchmark's name and version as the report shows them."""
    if kind == "osu":
        version = re.search(r"^# OSU MPI.*? v([\d.]+)", text, re.M)
        return f"OSU Micro-Benchmarks {version[1] if version else ''}".strip()
    if kind == "imb":
        version = re.search(r"Intel\(R\) MPI Benchmarks ([\d.]+)", text)
        return f"IMB-MPI1 {version[1] if version else ''}".strip()
    return "mvstack_pingpong (our own program)"
