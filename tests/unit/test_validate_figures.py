"""Reading the output of benchmarks, on output that was captured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import figures  # noqa: E402

DATA = ROOT / "data" / "validate"
SIZES = [2**power for power in range(2, 21)]


def captured(name: str) -> str:
    return (DATA / f"{name}.txt").read_text()


@pytest.mark.parametrize(
    ("kind", "name", "measure", "first", "last"),
    [
        ("osu", "osu_latency", "latency", "4", "1048576"),
        ("osu", "osu_bw_validated", "bandwidth", "4", "1048576"),
        ("osu", "osu_allreduce", "allreduce", "4", "1048576"),
        ("imb", "imb_latency", "latency", "4", "1048576"),
        ("imb", "imb_bandwidth", "bandwidth", "4", "1048576"),
        ("imb", "imb_allreduce", "allreduce", "4", "1048576"),
        ("own", "own_latency", "latency", "4", "1048576"),
        ("own", "own_bandwidth", "bandwidth", "4", "1048576"),
        ("own", "own_allreduce", "allreduce", "4", "1048576"),
    ],
)
def test_every_size_is_read_with_the_value_of_its_row(kind, name, measure, first, last):
    text = captured(name)
    found = figures.read(kind, text, measure)
    assert sorted(found) == SIZES
    column = {("imb", "bandwidth"): 2, ("imb", "latency"): 2, ("imb", "allreduce"): 4}
    for size in (first, last):
        row = next(line.split() for line in text.splitlines() if line.split()[:1] == [size])
        assert found[int(size)] == float(row[column.get((kind, measure), 1)])


def test_imb_that_ran_out_of_time_is_no_result():
    with pytest.raises(ValueError, match="ran out of the time"):
        figures.read("imb", captured("imb_bandwidth_timeout"), "bandwidth")


def test_osu_validation_that_fails_is_no_result():
    text = captured("osu_bw_validated").replace("Pass", "Fail", 1)
    with pytest.raises(ValueError, match="validation says Fail"):
        figures.read("osu", text, "bandwidth")


@pytest.mark.parametrize(
    ("kind", "name", "asked"),
    [
        ("osu", "osu_bw_validated", "latency"),
        ("imb", "imb_latency", "bandwidth"),
        ("own", "own_latency", "allreduce"),
        ("osu", "own_latency", "latency"),
    ],
)
def test_the_table_of_another_measure_is_not_taken(kind, name, asked):
    with pytest.raises(ValueError, match=r"no (table|heading|figure)"):
        figures.read(kind, captured(name), asked)


@pytest.mark.parametrize("kind", ["osu", "imb", "own"])
@pytest.mark.parametrize("text", ["", "mpiexec: command not found\n", "# Size Latency (us)\n"])
def test_no_figures_are_an_error(kind, text):
    with pytest.raises(ValueError, match="no "):
        figures.read(kind, text, "latency")


def test_a_figure_of_zero_is_an_error():
    text = captured("own_latency")
    first = next(line for line in text.splitlines() if line.startswith("4 "))
    with pytest.raises(ValueError, match="above zero"):
        figures.read("own", text.replace(first, "4 0.000"), "latency")


@pytest.mark.parametrize(
    ("kind", "name", "measure"),
    [
        ("osu", "osu_allreduce", "allreduce"),
        ("imb", "imb_allreduce", "allreduce"),
        ("own", "own_allreduce", "allreduce"),
    ],
)
def test_two_worlds_of_one_are_no_result(kind, name, measure):
    with pytest.raises(ValueError, match="2 times side by side"):
        figures.read(kind, captured(name) * 2, measure)


def test_titles_name_program_and_version():
    assert figures.title("osu", captured("osu_latency")) == "OSU Micro-Benchmarks 7.5"
    assert figures.title("imb", captured("imb_latency")) == "IMB-MPI1 2021.11"
    assert "our own" in figures.title("own", "")


@pytest.mark.parametrize(
    ("measure", "name", "tuned", "gain"),
    [("latency", "osu_latency", "2.0 4.0 8.0", 0.25), ("bandwidth", "osu_bw", "2.0 4.0 8.0", 4.0)],
)
def test_the_gain_of_what_was_tuned_is_the_median_of_the_rounds(measure, name, tuned, gain):
    heading = {"latency": "Avg Latency(us)", "bandwidth": "Bandwidth (MB/s)"}[measure]
    text = f"benchmark osu /x/{name}\n"
    for value in tuned.split():
        for way, figure in (("plain", "1.0"), ("tuned", value)):
            text += f"round {way}\n# Size      {heading}\n8 {figure}\n16 {figure}\n"
    text += f"round last\n# Size      {heading}\n8 1.0\n"
    found, every, spread = figures.gain(text, measure)
    assert found == pytest.approx(gain) and spread == 1
    assert len(every) == 3 and max(every) == pytest.approx({0.25: 0.5, 4.0: 8.0}[gain])
    middle = {"plain": {8: 1.0, 16: 1.0}, "tuned": {8: 4.0, 16: 4.0}}
    assert figures.medians(text, measure) == middle


@pytest.mark.parametrize("plain", [(1, 2, 1, 2), (4, 2, 1, 0.5)])
def test_the_spread_is_by_what_plain_rounds_differ(plain):
    text = "benchmark osu /x/osu_latency\n" + "".join(
        f"round {way}\n# Size      Avg Latency(us)\n8 {figure}\n16 {figure}\n"
        for one in plain
        for way, figure in (("plain", one), ("tuned", 7 * one))
    )
    found, _, spread = figures.gain(text, "latency")
    assert (found, spread) == (pytest.approx(1 / 7), pytest.approx(2))


@pytest.mark.parametrize(
    ("found", "every", "spread", "wrong"),
    [
        (0.5, (0.5, 0.4, 0.6), 1.1, True),
        (0.95, (0.95, 0.9, 0.99), 1.1, False),  # plain rounds differ by more
        (0.5, (0.5, 0.4, 1.2), 1.1, False),  # one round is faster
        (1.5, (1.5, 1.4, 1.6), 1.1, False),
    ],
)
def test_slower_is_in_each_round_and_beyond_the_spread(found, every, spread, wrong):
    assert figures.slower(found, every, spread) is wrong
