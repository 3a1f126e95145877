"""What the checks see of the caller's environment, and how processes are ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from mvstack.test import environment, process


def test_module_state_and_mpi_settings_do_not_reach_the_checks():
    kept, ignored = environment.for_checks(
        {
            "HOME": "/home/someone",
            "PATH": "/usr/bin",
            "LMOD_PKG": "/opt/lmod/lmod",
            "MODULEPATH": "/old",
            "LOADEDMODULES": "openmpi/4",
            "_ModuleTable001_": "x",
            "__LMOD_REF_COUNT_PATH": "/old:1",
            "BASH_FUNC_module%%": "() { :; }",
            "PMI_RANK": "0",
            "RFM_PREFIX": "/elsewhere",
            "FI_PROVIDER": "shm",
            "MPIR_CVAR_ENABLE_GPU": "1",
        }
    )
    assert kept == {
        "HOME": "/home/someone",
        "PATH": "/usr/bin",
        "LMOD_PKG": "/opt/lmod/lmod",
        "PYTHONUNBUFFERED": "1",
    }
    assert ignored == ["FI_PROVIDER", "MPIR_CVAR_ENABLE_GPU"]


def test_lines_and_exit_code(tmp_path):
    lines = []
    command = ["sh", "-c", "echo one; echo two >&2; exit 5"]
    code = process.run(command, cwd=tmp_path, env=dict(os.environ), on_line=lines.append)
    assert (code, sorted(lines)) == (5, ["one", "two"])


def test_bytes_that_are_no_text_do_not_stop_the_reader(tmp_path):
    lines = []
    command = ["printf", r"a\377b\n"]
    process.run(command, cwd=tmp_path, env=dict(os.environ), on_line=lines.append)
    assert lines == ["a�b"]


def alive(pid: int) -> bool:
    stat = process._stat(pid)
    return stat is not None and stat[0] != "Z"


def test_an_exception_ends_descendants_in_other_sessions_that_ignore_sigterm(tmp_path):
    """As ReFrame's jobs are: in a session of their own; and as deaf as a program can be."""
    program = (
        "import subprocess, sys, time\n"
        "deaf = 'import signal, time; signal.signal(15, 1); print(0, flush=True); time.sleep(99)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], start_new_session=True,"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(99)\n"
    )
    pids = []

    def stop(line: str) -> None:
        pids.append(int(line))
        assert alive(pids[0])
        raise KeyboardInterrupt

    begun = time.monotonic()
    command = [sys.executable, "-c", program]
    with pytest.raises(KeyboardInterrupt):
        process.run(command, cwd=tmp_path, env=dict(os.environ), on_line=stop)
    assert not alive(pids[0])
    assert time.monotonic() - begun < 3 * process.GRACE


def test_descendants_are_found_and_strangers_are_not():
    child = subprocess.Popen(["sleep", "30"])
    try:
        below = {pid for pid, _ in process.descendants(os.getpid())}
        assert child.pid in below and os.getppid() not in below
    finally:
        child.kill()
        child.wait()
