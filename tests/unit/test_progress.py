"""Progress in all its modes: what is said when, and that nothing outlives its block."""

import io
import os
import re
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.support.progress import Progress, last_line


def beating():
    return [thread for thread in threading.enumerate() if thread.name == "progress-heartbeat"]


def plain(total=0, **options):
    stream = io.StringIO()
    return Progress(total, mode=options.pop("mode", "plain"), stream=stream, **options), stream


def wait_for(stream, text, seconds=5.0):
    end = time.monotonic() + seconds
    while text not in stream.getvalue():
        assert time.monotonic() < end, f"{text!r} never came: {stream.getvalue()!r}"
        time.sleep(0.01)


def test_one_line_at_the_start_and_one_at_the_end(tmp_path):
    progress, stream = plain(total=7)
    with progress.step("install", "MPICH 4.0.2", log=tmp_path / "log"):
        pass
    first, second = stream.getvalue().splitlines()
    assert first == f"[1 of 7] install MPICH 4.0.2 …  log {tmp_path}/log"
    assert re.fullmatch(r"\[1 of 7\] install MPICH 4\.0\.2: done in [\d.e-]+ s", second)


def test_a_heartbeat_tells_the_note_and_the_last_line_of_the_log(tmp_path):
    log = tmp_path / "log"
    log.write_text("one\n  CC  src/mpi/init.lo\n\n")
    progress, stream = plain(total=3, heartbeat=0.02)
    with progress.step("install", "MPICH 4.0.2", log=log) as step:
        step.note("building [312 objects]")
        wait_for(stream, "|  building [312 objects]  |  CC src/mpi/init.lo")
        log.write_text("later\n")
        wait_for(stream, "later")
    beats = [line for line in stream.getvalue().splitlines() if "  |  " in line]
    assert re.match(r"\[1 of 3\] install MPICH 4\.0\.2: [\d.e-]+ s  \|  ", beats[0])


def test_a_heartbeat_does_not_say_the_step_of_easybuild_twice(tmp_path):
    log = tmp_path / "log"
    log.write_text("== building...\n")
    progress, stream = plain(heartbeat=0.02)
    with progress.step("install", "HPCC", log=log) as step:
        step.note("building, 312 objects")
        time.sleep(0.1)
    beats = [line for line in stream.getvalue().splitlines() if "312 objects" in line]
    assert beats and not any("==" in line for line in beats)


def test_heartbeats_come_no_more_often_than_asked():
    progress, stream = plain(heartbeat=0.2)
    with progress.step("test"):
        time.sleep(0.5)
    assert 1 <= stream.getvalue().count("test: 0") - stream.getvalue().count("done") <= 3


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("mode", ["plain", "live", "quiet"])
def test_no_thread_outlives_its_block(mode, error):
    before = set(threading.enumerate())
    progress, _ = plain(mode=mode, heartbeat=0.01)
    try:
        with progress.step("install"), progress.step("configure"):
            if mode == "plain":
                assert len(beating()) == 1
            if error:
                raise error
    except BaseException as caught:
        assert type(caught) is error
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("error", "said"), [(ValueError, "failed after"), (KeyboardInterrupt, "interrupted after")]
)
def test_an_error_is_the_end_of_the_step_with_its_log_and_goes_on(tmp_path, error, said):
    progress, stream = plain(total=2)
    with pytest.raises(error), progress.step("install", "HPCC 1.5.0", log=tmp_path / "log"):
        raise error
    last = stream.getvalue().splitlines()[-1]
    assert last.startswith(f"[1 of 2] install HPCC 1.5.0: {said} ")
    assert last.endswith(f"log {tmp_path}/log")


def test_steps_inside_others_do_not_count():
    progress, stream = plain(total=2)
    with progress.step("install"), progress.step("configure"):
        pass
    with progress.step("test"):
        pass
    starts = [line for line in stream.getvalue().splitlines() if line.endswith("…")]
    assert starts == ["[1 of 2] install …", "  · configure …", "[2 of 2] test …"]


def test_more_steps_than_announced_is_no_lie():
    progress, stream = plain(total=1)
    for name in "ab":
        with progress.step(name):
            pass
    assert "[2 of 2] b …" in stream.getvalue()


def test_a_skipped_step_counts_and_gives_its_reason():
    progress, stream = plain(total=2)
    progress.skip("install", "GCC 12.2.0", "already there")
    with progress.step("install", "MPICH"):
        pass
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1 of 2] install GCC 12.2.0: skipped (already there)"
    assert lines[1].startswith("[2 of 2]")


def test_quiet_says_nothing():
    progress, stream = plain(mode="quiet", total=1)
    with progress.step("install") as step:
        step.note("x")
    progress.skip("test")
    assert stream.getvalue() == ""


def test_a_reader_that_has_gone_does_not_end_the_work():
    read, write = os.pipe()
    stream = os.fdopen(write, "w")
    os.close(read)
    progress = Progress(mode="plain", heartbeat=0.01, stream=stream)
    done = False
    with progress.step("install"):
        time.sleep(0.05)
        done = True
    assert done
    with pytest.raises(BrokenPipeError):
        stream.close()


@given(st.text(), st.text())
def test_any_text_makes_one_line(kind, note):
    progress, stream = plain()
    with progress.step(kind, note) as step:
        step.note(note)
    assert len(stream.getvalue().split("\n")) == 3
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", stream.getvalue())


@pytest.mark.parametrize(
    ("content", "last"),
    [(b"", ""), (b"\n\n", ""), (b"a\nb", "b"), (b"a\n\x1b[1mb\x1b[0m\n", "\ufffd[1mb\ufffd[0m"),
     (b"x\n" + b"\xff\xfe\n", "\ufffd\ufffd"), (b"y" * 9000, "y" * 4096),
     (b"10%\r20%\r30%", "30%")],
)  # fmt: skip
def test_last_line_of_a_log(tmp_path, content, last):
    (tmp_path / "log").write_bytes(content)
    assert last_line(tmp_path / "log") == last


def test_a_log_that_is_not_there_yet_has_no_last_line(tmp_path):
    assert last_line(tmp_path / "none") == ""
    assert last_line(tmp_path) == ""
    assert last_line(None) == ""
