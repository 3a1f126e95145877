"""This very machine: looked at, captured and looked at again; and tools that misbehave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from mvstack.discover import capture, look, system_yaml
from mvstack.discover.view import View, ask
from mvstack.model.load import parse_system
from mvstack.support.errors import InvalidInput


def test_this_machine_is_found_and_its_system_file_is_valid():
    machine = look()
    assert machine.problems() == [] or set(machine.how) >= {"os", "cores", "fabric"}
    assert machine.cores <= os.cpu_count()
    if not machine.problems():
        parse_system(system_yaml(machine), Path("found.yaml"))


def test_capture_gives_the_same_findings(tmp_path):
    capture(tmp_path / "captured.yaml")
    assert look(tmp_path / "captured.yaml") == look()


def test_capture_holds_only_what_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do-not-tell")
    capture(tmp_path / "captured")
    text = (tmp_path / "captured").read_text()
    assert "do-not-tell" not in text and "/etc/passwd" not in text


def test_capture_where_nothing_can_be_written():
    with pytest.raises(InvalidInput) as caught:
        capture(Path("/proc/nowhere/captured"))
    assert "cannot be written" in str(caught.value)


def test_tools_are_not_run_for_another_root(tmp_path, monkeypatch):
    marker = tmp_path / "ran"
    program = tmp_path / "bin" / "sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {marker}\necho slurm 1.2.3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    look(tmp_path)
    assert not marker.exists()
    assert View(Path("/")).say("sinfo") == "slurm 1.2.3\n"
    assert marker.exists()


def test_tool_of_this_machine_is_asked(tmp_path, monkeypatch):
    for name, does in {
        "sinfo": "echo slurm 23.11.4",
        "scontrol": "echo 'MpiDefault = pmix'",
        "srun": "printf 'MPI plugin types are...\\n\\tpmix\\n' >&2",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    machine = look()
    assert (machine.scheduler, machine.pmi) == ("slurm", "pmix")
    slurm = next(item for item in machine.externals if item.name == "slurm")
    assert (slurm.version, slurm.mpi) == ("23.11.4", ["pmix"])


def test_hanging_tool_is_killed_with_its_children():
    begin = time.monotonic()
    output = ask(["/bin/sh", "-c", "echo begun; sleep 600 & sleep 600"], timeout=0.3)
    assert output is not None and output.timed_out and not output.ok
    assert output.text == "begun\n"
    assert time.monotonic() - begin < 300  # not waited for


def test_child_that_keeps_the_output_open_is_not_waited_for():
    begin = time.monotonic()
    output = ask(["/bin/sh", "-c", "sleep 60 & echo done"])
    assert output is not None and output.ok and output.text == "done\n"
    assert time.monotonic() - begin < 55  # not waited for


def test_tool_that_cannot_be_started(tmp_path):
    (tmp_path / "broken").write_text("\x7fELF nothing")
    (tmp_path / "broken").chmod(0o755)
    assert ask([str(tmp_path / "broken")]) is None
    assert ask(["/nowhere/tool"]) is None


def test_output_without_end_is_cut():
    output = ask(["/bin/sh", "-c", "head -c 3000000 /dev/zero; printf '\\377'"])
    assert output is not None and len(output.text) == 1 << 20


def test_looking_costs_less_than_two_seconds():
    look()
    begin = os.times()
    look()
    used = [after - before for before, after in zip(begin[:4], os.times()[:4], strict=True)]
    # CPU time of this process and its tools, since a busy machine stretches the rest.
    assert sum(used) < 2.0
