"""The groups of OSU's and Intel's benchmarks: what is run, and how what they print is read. Pure.

A launch is a program with its arguments and figures. A figure is a column of a table that it
prints, by words of the column's heading; the unit that the heading must have says whether less is
better (mvstack.test.history). Readers raise :class:`ValueError` with what to look at.
"""

import math
import re
from typing import NamedTuple

#: Sizes in bytes of which figures are recorded. All that are printed must be sound; what arrives is
#: compared, at each size, where the benchmark can (-c).
TOLD = (8, 1024, 65536, 1 << 20)
POWERS = tuple(2**power for power in range(3, 21))
ONE_ROW = ()
_UNITS = {"usec": "us", "Mbytes/sec": "MB/s", "Messages/s": "messages/s"}


class Figure(NamedTuple):
    """``heading`` is in that of its column; ``table`` is one of those that IMB prints."""

    name: str
    heading: str
    unit: str
    sizes: tuple[int, ...]
    table: str = ""


class Launch(NamedTuple):
    """``program`` is a path below OSU's folder, or one on PATH."""

    program: str
    arguments: str
    figures: tuple[Figure, ...]

    @property
    def name(self):
        """The program's own name."""
        return self.program.rpartition("/")[2]


def _osu(program, arguments, heading="Latency", unit="us", sizes=POWERS):
    figure = Figure(program.rpartition("/")[2], heading, unit, sizes)
    return Launch(program, arguments, (figure,))


def _overlapping(program, arguments, sizes=POWERS):
    name = program.rpartition("/")[2]
    overlap = Figure(f"{name}_overlap", "Overlap", "%", sizes)
    return Launch(program, arguments, (Figure(name, "Overall", "us", sizes), overlap))


_FAST, _FEW = "-m 8:1048576 -i 200 -x 20", "-m 8:1048576 -i 25 -x 3 -c"
_WINDOWS = "-m 8:1048576 -i 10 -x 2"  # of 64 messages each
_SMALL = "-i 1000 -x 100"
OSU = {
    "point-to-point": (
        _osu("pt2pt/osu_latency", f"{_FAST} -c"),
        _osu("pt2pt/osu_multi_lat", f"{_FAST} -c"),
        _osu("pt2pt/osu_bw", f"{_WINDOWS} -c", "Bandwidth", "MB/s"),
        _osu("pt2pt/osu_bibw", f"{_WINDOWS} -c", "Bandwidth", "MB/s"),
        _osu("pt2pt/osu_mbw_mr", f"{_WINDOWS} -c", "Messages", "messages/s"),
    ),
    "collective": (
        _osu("collective/osu_allreduce", _FEW),
        _osu("collective/osu_reduce", _FEW),
        _osu("collective/osu_reduce_scatter", _FEW),
        _osu("collective/osu_bcast", _FEW),
        _osu("collective/osu_gather", _FEW),
        _osu("collective/osu_scatter", _FEW),
        _osu("collective/osu_allgather", _FEW),
        _osu("collective/osu_alltoall", _FEW),
        _osu("collective/osu_barrier", _SMALL, sizes=ONE_ROW),
    ),
    "non-blocking": (
        _overlapping("collective/osu_iallreduce", _FEW),
        _overlapping("collective/osu_ialltoall", _FEW),
        _overlapping("collective/osu_ibcast", _FEW),
        _overlapping("collective/osu_ibarrier", _SMALL, ONE_ROW),
    ),
    "one-sided": (
        _osu("one-sided/osu_put_latency", _FAST),
        _osu("one-sided/osu_get_latency", _FAST),
        _osu("one-sided/osu_acc_latency", _FAST),
        _osu("one-sided/osu_put_bw", _WINDOWS, "Bandwidth", "MB/s"),
        _osu("one-sided/osu_get_bw", _WINDOWS, "Bandwidth", "MB/s"),
        _osu("one-sided/osu_fop_latency", _SMALL, sizes=ONE_ROW),
        _osu("one-sided/osu_cas_latency", _SMALL, sizes=ONE_ROW),
    ),
    "startup": (
        _osu("startup/osu_init", "", "avg", "ms", ONE_ROW),
        _osu("startup/osu_hello", "", "from launch to end", "ms", ONE_ROW),
    ),
}


def _imb(part, **tables):
    """IMB-``part`` with these of its benchmarks, each with the column that is recorded."""
    figures = []
    for table, heading in tables.items():
        one = table in ("Barrier", "Ibarrier", "Fetch_and_op", "Compare_and_swap")
        unit = "us" if heading.startswith("t") else "MB/s"
        name = f"imb_{part}_{table}".lower()
        figures.append(Figure(name, heading, unit, ONE_ROW if one else TOLD, table))
    # sizes.txt holds TOLD. -iter: iterations of a size, and MiB that all of them may move; -time:
    # seconds that one size may take.
    options = "-npmin {ranks} -msglen sizes.txt -iter 100,20 -time 30"
    return Launch(f"IMB-{part}", f"{' '.join(tables)} {options}", tuple(figures))


_T, _AVERAGE, _OVERLAPPED, _RATE = "t[usec]", "t_avg[usec]", "t_ovrl[usec]", "Mbytes/sec"
_BLOCKING = ("Allreduce", "Reduce", "Reduce_scatter", "Bcast", "Gather", "Scatter", "Allgather")
_ATOMIC = ("Accumulate", "Fetch_and_op", "Compare_and_swap")
IMB = (
    _imb(
        "MPI1",
        **{"PingPong": _T, "Sendrecv": _AVERAGE, "Exchange": _AVERAGE},
        **{"Uniband": _RATE, "Biband": _RATE},
        **dict.fromkeys((*_BLOCKING, "Alltoall", "Barrier"), _AVERAGE),
    ),
    _imb("RMA", **dict.fromkeys(("Unidir_put", "Unidir_get", "Bidir_put", *_ATOMIC), _T)),
    _imb("NBC", **dict.fromkeys(("Iallreduce", "Ialltoall", "Ibcast", "Ibarrier"), _OVERLAPPED)),
    _imb("EXT", Window=_AVERAGE, Unidir_Put=_T, Unidir_Get=_T, Accumulate=_AVERAGE),
    _imb("IO", S_Write_Indv=_T, S_Read_Indv=_T, C_Write_Indv=_AVERAGE, C_Read_Indv=_AVERAGE),
)


class Run(NamedTuple):
    """What became of a launch; ``status`` is None where the job ended before it."""

    command: str
    text: str
    status: int | None
    milliseconds: float


def runs(text):
    """``{name: Run}`` of what src/run_benchmarks.sh, and what it started, printed."""
    found = {}
    for part in re.split(r"^begin (?=\S+ )", text, flags=re.M)[1:]:
        first, _, rest = part.partition("\n")
        name, _, command = first.partition(" ")
        said = re.search(rf"(.*)^end {name} (\d+) (\d+)$", rest, re.M | re.S)
        ended = (said[1], int(said[2]), float(said[3])) if said else (rest, None, math.nan)
        found[name] = Run(command, *ended)
    return found


def read(launch, run, limit):
    """``[(figure, bytes or None, value, unit)]`` of a launch that had ``limit`` seconds."""
    alone = f"run it alone, with the MPI's module loaded: {run.command}"
    if run.status in (124, 137):
        raise ValueError(
            f"{launch.name} did not end within {limit} s: {reached(launch, run.text)}. It hangs, "
            f"or the machine is far too busy; {alone}, and look where its ranks are (gdb -p)"
        )
    if wrong := re.search(r"^(\d+)[ \t].*\bFail[ \t]*$", run.text, re.M):  # its status is 1 then
        raise ValueError(
            f"{launch.name}: its own validation says Fail at {wrong[1]} bytes: data arrived "
            f"changed; the checks Messages and Collectives tell which; {alone}"
        )
    if run.status != 0:
        raise ValueError(
            f"{launch.name} ended with status {run.status}: {reached(launch, run.text)}; its last "
            f"words are: {tail(run.text)}; {alone}"
        )
    try:
        tables = _tables(launch, run)
        return [row for one in launch.figures for row in _rows(one, tables)]
    except ValueError as error:
        raise ValueError(f"{launch.name}: {error}; {alone}") from None


def reached(launch, text):
    """The last figure that was printed, and the size that comes then: there it hangs."""
    of, sizes = "", launch.figures[0].sizes
    if names := re.findall(r"^# Benchmarking (\S+)", text, re.M):
        of, text = f" of {names[-1]}", text.rpartition("# Benchmarking ")[2]
    rows = re.findall(r"^[ \t]*(\d+)[ \t]+[\d.]+[ \t\d.]*(?:Pass|Fail)?$", text, re.M)
    later = [size for size in sizes if size > int(rows[-1])] if rows else sizes[:1]
    last = f"its last figure{of} is that of {rows[-1]} bytes" if rows else f"no figure{of} came"
    return last + (f", next is {later[0]} bytes" if later else "")


def tail(text):
    """The last lines of what was printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[-300:] or "none"


def _tables(launch, run):
    """``{name: (headings, rows)}`` of what a launch printed, as words."""
    if launch.name.startswith("IMB-"):
        found = _imb_tables(run.text)
    elif launch.name == "osu_init":
        lines = re.findall(r"^nprocs: \d+, .*avg: (\S+) ms$", run.text, re.M)
        found = [("", ["avg(ms)"], [[value]]) for value in lines]
    elif launch.name == "osu_hello":
        lines = re.findall(r"^This is a test with \d+ processes$", run.text, re.M)
        found = [("", ["from launch to end(ms)"], [[str(run.milliseconds)]]) for _ in lines]
    else:
        found = _osu_tables(run.text)
    if not found:
        raise ValueError(f"no figure in what it printed: {tail(run.text)}")
    tables = {name: (headings, rows) for name, headings, rows in found}
    if len(tables) != len(found):
        raise ValueError(
            "it ran several times side by side: its ranks are worlds of their own; see the check "
            "WorldSize"
        )
    return tables


def _osu_tables(text):
    """OMB 5 to 7: ``# Size  Overall(us)  …``, or without a size, and rows below it."""
    found = []
    for line in text.splitlines():
        if re.match(r"# (Size\s|.*\(us\))", line):
            found.append(("", re.split(r"\s{2,}", line[2:].strip()), []))
        elif found and re.match(r"\s*[-\d.]", line):
            found[-1][2].append(line.split())
    return found


def _imb_tables(text):
    """After ``# Benchmarking <name>``, perhaps in two modes, each to a blank line."""
    found = []
    for part in text.split("# Benchmarking ")[1:]:
        mode = re.search(r"MODE: (\S+)", part)
        table = re.search(r"^(.*#repetitions.*)\n((?:.*\S.*\n?)*)", part, re.M)
        name = part.split()[0] + (f" {mode[1]}" if mode else "")
        rows = [line.split() for line in table[2].splitlines()] if table else []
        found.append((name, table[1].split() if table else [], rows))
    return found


def _rows(figure, tables):
    """The rows of a figure that are recorded, once all of its column are sound."""
    of = f" of {figure.table}" if figure.table else ""
    # of two modes that in which each operation ends before the next begins
    names = [figure.table + mode for mode in ("", " NON-AGGREGATE", " AGGREGATE")]
    headings, rows = next((tables[one] for one in names if one in tables), ([], []))
    at = [count for count, one in enumerate(headings) if figure.heading in one]
    if not at:
        there = ", ".join(headings) or "none"
        raise ValueError(f"no column {figure.heading}{of} in what it printed; columns: {there}")
    unit = re.sub(r".*[(\[](.*)[)\]]$", r"\1", headings[at[0]])
    unit = _UNITS.get(unit, unit)
    if unit != figure.unit:
        raise ValueError(f"the column {headings[at[0]]}{of} is in {unit}, expected {figure.unit}")
    values = {}
    for words in rows:
        where = f"{of} at {words[0]} bytes" if figure.sizes else of
        size = int(words[0]) if figure.sizes and words[0].isdigit() else None
        values[size] = _value(words, len(headings), at[0], where)
        if size != 0 and not (values[size] > 0 or (unit == "%" and values[size] == 0)):
            raise ValueError(f"a figure{where} is {words[at[0]]} {unit}; it must be above zero")
    missing = [size for size in figure.sizes or (None,) if size not in values]
    if missing:
        first = "" if missing[0] is None else f", the first of {missing[0]} bytes"
        raise ValueError(f"{len(missing)} figures{of} are missing{first}")
    told = [size for size in values if size in TOLD] if figure.sizes else [None]
    return [(figure.name, size, values[size], unit) for size in told]


def _value(words, columns, at, where):
    """The figure of one row, all of whose words are numbers but for OSU's verdict, Pass."""
    if any("time-out" in one for one in words):
        raise ValueError(f"it ran out of the time that one size may take{where}")
    try:
        numbers = [float(one) for one in words if one != "Pass"]
    except ValueError:
        numbers = []
    if len(words) != columns or not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"a row{where} is none: {' '.join(words)[:100]}")
    return numbers[at]
