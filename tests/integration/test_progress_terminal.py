"""Progress on a real terminal, a dumb one and a pipe."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

SOURCE = str(Path(__file__).parents[2] / "src")
PROGRAM = """
import sys, time
from pathlib import Path
from mvstack.support.progress import Progress
progress = Progress(total=3)
with progress.step("install", "MPICH 4.0.2", log=Path(sys.argv[1])) as step:
    step.note("building [312 objects]")
    print("mode", progress.mode, flush=True)
    time.sleep(float(sys.argv[2]))
"""


def on_a_terminal(log, seconds, environment=None, interrupt=False):
    """What PROGRAM writes to a real terminal (a pty of 80 columns) until it ends."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(log), str(seconds)],
        stdin=side, stdout=side, stderr=side, close_fds=True,
        env={**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "80",
             **(environment or {})},
    )  # fmt: skip
    os.close(side)
    text = b""
    try:
        while True:
            text += os.read(main, 65536)
            if interrupt and b"MPICH" in text:
                process.send_signal(signal.SIGINT)
                interrupt = False
    except OSError:
        pass  # a pty reads as an error once its other side is closed
    os.close(main)
    process.wait(timeout=10)
    return text.decode(), process.returncode


def test_a_terminal_shows_step_time_note_and_log_while_it_runs(tmp_path):
    log = tmp_path / "log"
    log.write_text("CC src/mpi/init.lo\n")
    text, status = on_a_terminal(log, 0.8)
    assert status == 0
    assert "mode live" in text
    for shown in ("[1 of 3] install MPICH 4.0.2", "building [312 objects]", "CC src/mpi/init.lo"):
        assert shown in text
    assert re.search(r"0\.[3-9]\d* s", text), "the time did not go on"
    assert "✓" in text
    assert "done in" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor must come back"


def test_ctrl_c_on_a_terminal_is_told_and_gives_the_cursor_back(tmp_path):
    text, status = on_a_terminal(tmp_path / "log", 30, interrupt=True)
    assert status in (-signal.SIGINT, 130)
    assert "interrupted after" in text
    assert text.count("\x1b[?25h") == 1


def test_a_dumb_terminal_gets_plain_lines(tmp_path):
    text, _ = on_a_terminal(tmp_path / "log", 0, {"TERM": "dumb"})
    assert "mode plain" in text
    assert "\x1b" not in text


def test_a_pipe_gets_plain_lines(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "log"), "0"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.stdout == "mode plain\n"
    assert len(done.stderr.splitlines()) == 2
    assert "\x1b" not in done.stderr
