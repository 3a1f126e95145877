"""The report in a terminal: 80 columns, pipes, odd text; and how numbers are written."""

import io
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from mvstack.report.records import Notice
from mvstack.report.summary import gather
from mvstack.report.terminal import print_report
from mvstack.support.units import clean, duration, number, one_line, quantity, size

SAMPLES = Path(__file__).parents[1] / "data" / "report"


def printed(data, page=None, **options):
    stream = io.StringIO()
    print_report(data, Console(file=stream, **options), page)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["local-fallback", "mvapich-two-devices", "none"])
@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "width": 80, "no_color": True}])
def test_it_fits_80_columns(name, options):
    data = gather(SAMPLES / name)
    text = re.sub(r"\x1b\[[\d;]*m", "", printed(data, **options))
    # Commands and the fallback sentence are one line each, to be copied and searched for.
    own = (data.fallback, "module use", "nothing to load")
    lines = [line for line in text.splitlines() if not any(s and s in line for s in own)]
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) > 15


def test_a_pipe_gets_no_escape_sequences_and_a_terminal_gets_colours():
    data = gather(SAMPLES / "local-fallback")
    assert "\x1b" not in printed(data)
    assert "\x1b[" in printed(data, force_terminal=True, color_system="standard")


def test_it_begins_and_ends_with_the_fallback():
    data = gather(SAMPLES / "local-fallback")
    lines = printed(data, Path("/a/report.html")).splitlines()
    assert lines[0] == lines[-1] == data.fallback
    assert lines[-4] == "report   /a/report.html"
    assert lines[-3].endswith("/local-fallback/modules/Core")
    assert lines[-2].strip() == "module load mvapich-stack/2026.11 hpcc/1.5.0"


def test_without_a_fallback_it_ends_with_the_module_load_line():
    lines = printed(gather(SAMPLES / "mvapich-two-devices"), Path("/a/r.html")).splitlines()
    assert lines[0] == "mvapich-stack 2026.11 on local/node"
    assert lines[-1].strip() == "module load mvapich-stack/2026.11 hpcc/1.5.0"


def test_it_says_what_failed_and_why_and_whose_bytes():
    text = " ".join(printed(gather(SAMPLES / "mvapich-two-devices")).split())
    assert "Benchmark allreduce with mvapich/4.0-ucx failed: latency at 16 KiB: 12.4 us" in text
    assert "Hpcc with mvapich/4.0-ucx missing: the launcher printed nothing" in text
    assert "mvapich-4.0.tar.gz: *not upstream's bytes*" in text
    assert "was not built: its build failed" in text


def test_every_hash_is_printed_whole():
    data = gather(SAMPLES / "local-fallback")
    for build in data.builds:
        for source in build.sources:
            assert len(source.sha256) == 64
            assert f"sha256 {source.sha256}" in printed(data)


def test_markup_and_escapes_in_records_are_text(tmp_path):
    data = gather(SAMPLES / "none")
    message = clean("\x1b]0;title\x07 [/nothing]")
    odd = Notice(kind="record", where="[red]x[/red]", message=message, todo=":smile:")
    text = printed(
        data.model_copy(update={"notices": (odd,)}), force_terminal=True, color_system=None
    )
    assert "[red]x[/red]" in text
    assert "[/nothing]" in text
    assert ":smile:" in text
    assert "\x1b]0" not in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_a_terminal_will_do(encoding):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)  # strict, as a terminal's is
    print_report(gather(SAMPLES / "mvapich-two-devices"), Console(file=stream, width=80))
    stream.flush()
    assert b"module load mvapich-stack/2026.11" in raw.getvalue()


def test_a_tree_with_blanks_in_its_path_is_quoted(tmp_path):
    shutil.copytree(SAMPLES / "local-fallback", tmp_path / "a tree")
    assert f"module use '{tmp_path}/a tree/modules/Core'" in printed(gather(tmp_path / "a tree"))


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "—"), (float("nan"), "—"), (-1, "—"), (0, "0 s"), (0.04213, "0.042 s"),
        (0.999, "1.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 00 s"),
        (1104.2, "18 min 24 s"), (3599.7, "1 h 00 min"), (3720, "1 h 02 min"),
        (360_000, "100 h 00 min"),
    ],
)  # fmt: skip
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "—"), (float("inf"), "—"), (0, "0"), (8, "8"), (0.3238, "0.324"), (4.2, "4.20"),
        (99.06, "99.1"), (99.96, "100"), (9.996, "10.0"), (10812.4, "10,812"),
        (0.00012, "0.00012"), (1e20, "1e+20"), (-5.5, "-5.50"),
    ],
)  # fmt: skip
def test_numbers(value, said):
    assert number(value) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(None, "—"), (0, "0 B"), (8, "8 B"), (1000, "1,000 B"), (1024, "1 KiB"), (1536, "1,536 B"),
     (4 << 20, "4 MiB"), (1 << 30, "1 GiB")],
)  # fmt: skip
def test_sizes(count, said):
    assert size(count) == said


def test_units_are_written_as_people_write_them():
    assert quantity(0.32, "us") == "0.320 µs"
    assert quantity(10800, "MBytes/sec") == "10,800 MB/s"
    assert quantity(None, "us") == "—"


@given(st.floats() | st.none())
def test_every_number_can_be_written(value):
    assert number(value)
    assert duration(value)
    assert len(number(value)) < 24


@given(st.text())
def test_a_line_stays_a_line(text):
    line = one_line(text, 20)
    assert len(line) <= 20
    assert line.isprintable() or "\ufffd" in line or not line
    line.encode("utf-8")
