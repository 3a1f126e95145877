"""Reading the groups of OSU's and Intel's benchmarks, on output that was captured, and spoilt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "reframe"))

import figures  # noqa: E402
import groups  # noqa: E402

from mvstack.test.history import LESS_IS_BETTER  # noqa: E402

DATA = ROOT / "data" / "validate"
OSU = {one.name: one for launches in groups.OSU.values() for one in launches}
IMB = {one.name: one for one in groups.IMB}
OUTPUT = {kind: (DATA / f"{kind}_groups.txt").read_text() for kind in ("osu", "imb")}


def ran(name: str) -> groups.Run:
    return groups.runs(OUTPUT["imb" if name.startswith("IMB") else "osu"])[name]


def told(name: str, spoil=lambda text: text, **changes):
    """The figures of a launch, what it printed having been spoilt."""
    run = ran(name)
    return groups.read(
        (OSU | IMB)[name], run._replace(**({"text": spoil(run.text)} | changes)), 120
    )


def test_every_figure_has_a_name_of_its_own_and_a_unit_whose_better_way_is_known() -> None:
    every = [one for launch in (*OSU.values(), *IMB.values()) for one in launch.figures]
    names = [one.name for one in every]
    assert len(names) == len(set(names))
    # names that end in a number would be taken for sizes; those of Benchmark are judged by its rows
    assert not [one for one in names if re.search(r"_\d+$", one)]
    assert not {*names} & {*figures.MEASURES}
    more = {"MB/s", "messages/s", "%"}
    for one in every:
        slow = re.search(r"lat|t\[|t_|avg|Overall|Latency|end", one.heading)
        assert one.unit in (LESS_IS_BETTER if slow else more), one


def test_every_group_is_a_parameter_of_the_check() -> None:
    text = (ROOT / "reframe" / "osu.py").read_text()
    assert all(f'"{one}"' in text for one in groups.OSU)


def test_what_was_captured_has_every_launch() -> None:
    for kind, launches in (("osu", OSU), ("imb", IMB)):
        assert list(groups.runs(OUTPUT[kind])) == list(launches)
    assert figures.title("osu", OUTPUT["osu"]) == "OSU Micro-Benchmarks 7.5"


@pytest.mark.parametrize("name", [*OSU, *IMB])
def test_every_figure_is_read_at_the_sizes_that_are_told(name: str) -> None:
    found = told(name)
    for figure in (OSU | IMB)[name].figures:
        sizes = [size for what, size, _, _ in found if what == figure.name]
        assert sizes == (list(groups.TOLD) if figure.sizes else [None])
    assert {unit for *_, unit in found} == {one.unit for one in (OSU | IMB)[name].figures}


def row(text: str, size: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [size])


def test_a_figure_is_that_of_its_column() -> None:
    for name, column in (("osu_bw", 1), ("osu_mbw_mr", 2), ("osu_iallreduce", 1)):
        assert (name, 65536, float(row(ran(name).text, "65536")[column])) in [
            one[:3] for one in told(name)
        ]
    overlap = float(row(ran("osu_ibcast").text, "1048576")[4])
    assert ("osu_ibcast_overlap", 1 << 20, overlap, "%") in told("osu_ibcast")
    (init,) = re.findall(r"avg: (\d+) ms", ran("osu_init").text)
    assert told("osu_init") == [("osu_init", None, float(init), "ms")]
    assert told("osu_hello", milliseconds=250.0) == [("osu_hello", None, 250.0, "ms")]


def test_of_two_modes_that_is_read_in_which_each_operation_ends() -> None:
    mode = ran("IMB-RMA").text.partition("# Benchmarking Unidir_get")[2]
    _, _, table = mode.partition("MODE: NON-AGGREGATE")
    value = float(row(table, "1024")[2])
    assert ("imb_rma_unidir_get", 1024, value, "us") in told("IMB-RMA")


def without_rows(text: str) -> str:
    return re.sub(r"^ *\d.*\n", "", text, flags=re.M)


def at_512(value: str):
    return lambda text: re.sub(r"(?m)^(512 +).*", rf"\g<1>{value}", text)


def without(table: str):
    return lambda text: text.replace(f"# Benchmarking {table}", "#")


@pytest.mark.parametrize(
    ("name", "spoil", "why"),
    [
        ("osu_bw", lambda text: "", "no figure in what it printed: none"),
        ("osu_bw", lambda text: "Segfault? no: garbage\n", "printed: Segfault\\? no: garbage"),
        ("osu_bw", without_rows, "18 figures are missing, the first of 8 bytes"),
        ("osu_barrier", without_rows, "1 figures are missing"),
        ("osu_bw", lambda text: re.sub("(?m)^4096 .*\n", "", text), "1 figures .* 4096 bytes"),
        ("osu_bw", lambda text: text.replace("Pass", "Fail", 3), "says Fail at 4 bytes"),
        ("osu_put_bw", lambda text: text.replace("MB/s", "us"), "no column Bandwidth|is in us"),
        ("osu_latency", lambda text: text.replace("(us)", "(ms)"), "is in ms, expected us"),
        ("osu_latency", lambda text: text.replace("Latency(", "Bandwidth("), "no column Latency"),
        ("osu_ibcast", lambda text: text.replace("Overlap(%)", "Overlap(us)"), "in us, expected %"),
        ("osu_bw", lambda text: text * 2, "several times side by side"),
        ("osu_init", lambda text: text * 2, "several times side by side"),
        ("osu_hello", lambda text: "hello\n", "no figure in what it printed: hello"),
        ("osu_put_latency", at_512("?!"), r"a row at 512 bytes is none: 512 \?!"),
        ("osu_put_latency", at_512("-nan"), "a row at 512 bytes is none"),
        ("osu_put_latency", at_512("0.00"), "a figure at 512 bytes is 0.00 us; .* above zero"),
        ("IMB-EXT", lambda text: "", "no figure in what it printed"),
        ("IMB-RMA", lambda text: text * 2, "several times side by side"),
        ("IMB-MPI1", without("Bcast"), "no column .* of Bcast"),
        ("IMB-MPI1", without_rows, "4 figures of PingPong are missing, the first of 8 bytes"),
        ("IMB-MPI1", lambda text: text.replace("t[usec]", "t[msec]"), r"no column t\[usec\]"),
        (
            "IMB-NBC",
            lambda text: re.sub("(?m)^( +65536) .*", r"\1 time-out.; Time limit", text),
            "ran out of the time .* of Iallreduce at 65536 bytes",
        ),
    ],
)  # fmt: skip
def test_what_is_spoilt_is_told(name: str, spoil, why: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: .*({why}).*run it alone, .*: mpiexec -n 2 "):
        told(name, spoil)


def upto(size: str):
    return lambda text: re.sub(rf"(?ms)^( *{size} [^\n]*\n).*", r"\1", text)


@pytest.mark.parametrize(
    ("name", "spoil", "where"),
    [
        ("osu_put_latency", upto("4096"), "its last figure is that of 4096 bytes, next is 8192"),
        ("osu_alltoall", lambda text: "", "no figure came, next is 8 bytes"),
        ("osu_barrier", lambda text: "", "no figure came. It hangs"),
        ("IMB-MPI1", upto("1024"), "figure of PingPong is that of 1024 bytes, next is 65536"),
        ("IMB-MPI1", lambda text: text.partition("\n   ")[0], "no figure of PingPong came"),
    ],
)  # fmt: skip
def test_one_that_hangs_is_told_with_the_size(name: str, spoil, where: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} did not end within 120 s: .*{where}.*gdb -p"):
        told(name, spoil, status=124)


@pytest.mark.parametrize("status", [1, 139, None])
def test_one_that_dies_is_told(status: int | None) -> None:
    why = (
        rf"osu_bw ended with status {status}: .*of 64 bytes.*last words are: .*64 .*; run it alone"
    )
    with pytest.raises(ValueError, match=why):
        told("osu_bw", upto("64"), status=status)


@pytest.mark.parametrize("status", [0, 1])
def test_a_validation_that_fails_is_told_whatever_the_status(status: int) -> None:
    """OMB 7.5 ends with 1 after it."""
    with pytest.raises(ValueError, match=r"^osu_bw: its own validation says Fail at 4 bytes: data"):
        told("osu_bw", lambda text: text.replace("Pass", "Fail", 1), status=status)
