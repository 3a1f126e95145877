"""HPC Challenge 1.5: a small input for any number of ranks, and the verdict of its own checks."""

import math
import re

# Names in HPCC's summary that are worth a figure, with their units.
FIGURES = {
    "HPL_Tflops": "Tflop/s",
    "PTRANS_GBs": "GB/s",
    "StarDGEMM_Gflops": "Gflop/s",
    "StarSTREAM_Triad": "GB/s",
    "MPIRandomAccess_GUPs": "GUP/s",
    "MPIFFT_Gflops": "Gflop/s",
    "MaxPingPongLatency_usec": "us",
    "RandomlyOrderedRingBandwidth_GBytes": "GB/s",
}
# HPL's bound for a scaled residual, given to HPCC in its input and used for DGEMM and PTRANS too.
THRESHOLD = 16.0
BLOCK = 80
DOUBLE_EPSILON = 2.0**-53


def grid(ranks):
    """The most square process grid ``(p, q)`` of ``ranks``, with p <= q."""
    p = next(p for p in range(math.isqrt(ranks), 0, -1) if ranks % p == 0)
    return p, ranks // p


def hpl_lines(ranks, size, block, threshold, title, output):
    """HPL's part of an input: one problem of ``size`` rows in blocks, on all ``ranks``."""
    p, q = grid(ranks)
    return [
        f"{title} input made by mvapich-stack",
        "(small: it verifies, it does not rank machines)",
        "hpl.out      output file, not used",
        output,
        "1            number of problem sizes",
        f"{size}         N",
        "1            number of block sizes",
        f"{block}           NB",
        "0            ranks by row",
        "1            number of process grids",
        f"{p}            P",
        f"{q}            Q",
        f"{threshold}         largest scaled residual that passes",
        "1            number of panel factorisations",
        "2            right-looking",
        "1            number of stopping sizes",
        "4            columns at which recursion stops",
        "1            number of panel divisions",
        "2            panels a recursion",
        "1            number of recursive factorisations",
        "1            Crout",
        "1            number of broadcasts",
        "1            ring, modified",
        "1            number of look-ahead depths",
        "1            depth",
        "2            swap: mixed",
        "64           swap threshold",
        "0            L1 transposed",
        "0            U transposed",
        "1            equilibration",
        "8            alignment, doubles",
    ]


def input_file(ranks):
    """The text of hpccinf.txt: one HPL problem whose work a rank is the same for any ``ranks``.

    HPCC reads line by line, the first words of each; the rest of a line is for the reader.
    """
    size = BLOCK * round(1400 * math.sqrt(ranks) / BLOCK)
    lines = [
        *hpl_lines(ranks, size, BLOCK, THRESHOLD, "HPC Challenge", "8            to hpccoutf.txt"),
        "---- separator ----",
        "0            more problem sizes for PTRANS",
        "0            -",
        "0            more block sizes for PTRANS",
        "0            -",
    ]
    return "\n".join(lines) + "\n"


def summary(text):
    """The ``name=value`` rows of the section Summary, as strings."""
    section = re.search(r"^Begin of Summary section\.\n(.*?)^End of Summary", text, re.S | re.M)
    return dict(re.findall(r"^(\w+)=(\S+)$", section[1], re.M)) if section else {}


def complaints(text, ranks):
    """What is wrong with hpccoutf.txt ``text`` of a run on ``ranks`` ranks; [] if it verified."""
    values = summary(text)
    if not values:
        return ["hpccoutf.txt has no summary: HPCC did not get to its end"]
    return [
        *_equal(values, "Success", 1),
        *_equal(values, "CommWorldProcs", ranks),
        *_below(values, "PTRANS_residual", THRESHOLD),
        # HPCC's rule for RandomAccess: under 1 % of the table may differ.
        *_below(values, "MPIRandomAccess_ErrorsFraction", 0.01),
        *_below(values, "MPIRandomAccess_LCG_ErrorsFraction", 0.01),
        # An FFT of n points and its inverse err by about eps log2 n; 16 is HPL's room.
        *_below(values, "MPIFFT_maxErr", THRESHOLD * DOUBLE_EPSILON * _log2(values, "MPIFFT_N")),
        *_tests(text, "HPL", 1),
        *_tests(text, "PTRANS", 5),
        *_once(text, "StarSTREAM", r"^Solution Validates"),
        *_residual(text),
        *_said(text),
    ]


def _log2(values, name):
    return math.log2(max(float(values.get(name, 2)), 2))


def _equal(values, name, wanted):
    found = values.get(name)
    return [] if found == str(wanted) else [f"{name} is {found}, expected {wanted}"]


def _below(values, name, bound):
    found = values.get(name, "nan")
    # A negative figure is HPCC's mark for "did not run", and a comparison with nan is false.
    return [] if 0 <= float(found) < bound else [f"{name} is {found}, must be below {bound:g}"]


def _section(text, name):
    pattern = rf"^Begin of {name} section\.\n(.*?)^End of {name} section"
    found = re.search(pattern, text, re.S | re.M)
    return found[1] if found else ""


def _tests(text, name, wanted):
    """The section says that ``wanted`` residual checks passed and none failed."""
    section = _section(text, name)
    passed = re.search(r"(\d+) tests completed and passed residual checks", section)
    failed = re.search(r"(\d+) tests completed and failed residual checks", section)
    found = (int(passed[1]) if passed else None, int(failed[1]) if failed else None)
    if found == (wanted, 0):
        return []
    return [f"{name}: residual checks passed, failed: {found}; expected ({wanted}, 0)"]


def _once(text, name, pattern):
    return [] if re.search(pattern, _section(text, name), re.M) else [f"{name} did not validate"]


def _residual(text):
    found = re.search(r"^Scaled residual: (\S+)", _section(text, "StarDGEMM"), re.M)
    value = float(found[1]) if found else math.nan
    return [] if 0 <= value < THRESHOLD else [f"StarDGEMM: scaled residual is {value}"]


def _said(text):
    """Lines in which HPCC itself says that something failed."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        f"HPCC says: {line}"
        for line in lines
        if re.search(r"\bFAILED\b|\(failed\)|Failed Validation", line)
        or re.fullmatch(r"Node\(s\) with error [1-9]\d*", line)
    ]
