"""This very machine: looked at, captured and looked at again; and tools that misbehave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import archspec.cpu
import pytest
from discover_roots import MACHINES, kept, make, system_of, tool
from hypothesis import given
from hypothesis import strategies as st

from mvstack.discover import capture, look
from mvstack.discover.capture import Capture, read_capture, write_capture
from mvstack.discover.look import examine
from mvstack.discover.machine import REQUIRED
from mvstack.discover.view import View, ask
from mvstack.support.errors import InvalidInput


def test_this_machine_is_found_and_its_system_file_is_valid():
    machine = look()
    assert machine.problems() == [] or set(machine.how) >= {"os", "cores", "fabric"}
    assert machine.cores == machine.cpu.cores_all or machine.notes
    assert machine.cores <= os.cpu_count()
    if not machine.problems():
        system_of(machine)


def test_target_of_this_machine_is_archspecs():
    assert look().target == archspec.cpu.host().name


def test_capture_gives_the_same_findings(tmp_path):
    capture(tmp_path / "captured.yaml")
    assert look(tmp_path / "captured.yaml") == look()


@pytest.mark.parametrize("name", MACHINES)
def test_capture_of_a_captured_machine_is_the_same(tmp_path, name):
    again = again_of(kept(name), tmp_path)
    assert look(again) == look(kept(name))


def again_of(root: Capture, folder: Path) -> Capture:
    """The capture of a machine that is a capture, written and read."""
    view = View(root)
    examine(view)
    write_capture(view.seen, folder / "again.yaml")
    return read_capture(folder / "again.yaml")


def test_capture_keeps_links_denials_and_failures(tmp_path):
    root = make(
        Capture(denied={"/etc/os-release"}),
        {"/sys/class/drm/card0/device/vendor": "0x10de"},
        {
            "/sys/class/drm/card0/device": "../../../devices/0000:4d:00.0",
            "/sys/class/drm/card0/device/driver": "../nouveau",
        },
    )
    tool(root, "scontrol", "show", "config", text="no controller\n", status="1")
    tool(root, "sinfo", "--version", text="slurm 23.02.1\n")
    tool(root, "lsid", text="", status="timeout")
    machine = look(again_of(root, tmp_path))
    assert machine == look(root)
    text = "\n".join(machine.notes)
    for words in ("no permission to read /etc/os-release", "nouveau", "lsid did not answer"):
        assert words in text
    assert "no controller" in text


ODD = st.text(st.sampled_from(" \n\t\r:#-|'\"\\a\x00\x7f\x85\u2028\u00a0\ufeff\U0001f600"))
ANY = st.text(st.characters(codec="utf-8"))


@given(path=ANY, text=ANY, odd=ODD)
def test_any_text_is_read_as_it_was_written(tmp_path_factory, path, text, odd):
    file = tmp_path_factory.mktemp("any") / "capture.yaml"
    seen = Capture(files={path: text, "odd": odd}, outputs={"a": odd}, environment={odd: text})
    write_capture(seen, file)
    back = read_capture(file)
    found = (back.files, back.outputs, back.environment)
    assert found == (seen.files, seen.outputs, seen.environment)


@pytest.mark.parametrize(
    "text", ["", "- a", "files: 1", "hostname: x", "files: {/a: [1]}", "{", "files:\n  /a: 1\n"]
)
def test_a_file_that_is_no_capture_is_named(tmp_path, text):
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        look(file)
    assert "mine.yaml" in caught.value.problems[0].where


def test_capture_holds_only_what_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do-not-tell")
    capture(tmp_path / "captured")
    text = (tmp_path / "captured").read_text()
    assert "do-not-tell" not in text and "/etc/passwd" not in text


def test_capture_leaves_out_slurms_configuration_and_serial_numbers(tmp_path):
    root = kept("gpu-v100")
    root.outputs["scontrol show config"] += "AccountingStorageHost = db.private\n"
    root.outputs["nvidia-smi -L"] = "GPU 0: V100 (UUID: GPU-0000-1)\n" * 4
    again = again_of(root, tmp_path)
    text = (tmp_path / "again.yaml").read_text()
    assert "db.private" not in text and "GPU-0000" not in text
    assert look(again) == look(root)


def test_later_processors_are_kept_where_they_differ(tmp_path):
    block = "processor: {}\nvendor_id: GenuineIntel\nflags: {}\nphysical id: 0\ncore id: {}\n"
    text = "\n".join(block.format(number, "sse " * 9 + "avx" * number, number) for number in (0, 1))
    root = make(Capture(), {"/proc/cpuinfo": text})
    assert look(again_of(root, tmp_path)) == look(root)
    assert (tmp_path / "again.yaml").read_text().count("GenuineIntel") == 1
    assert any("differ in their flags" in note for note in look(root).notes)


def test_capture_refuses_a_name_in_use(tmp_path):
    (tmp_path / "kept").write_text("mine")
    for name in ("kept", "."):
        with pytest.raises(InvalidInput) as caught:
            capture(tmp_path / name)
        assert "already" in str(caught.value)
    assert (tmp_path / "kept").read_text() == "mine"


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


def test_required_fields_are_fields():
    assert set(REQUIRED) <= set(type(look(Path("/nonexistent"))).model_fields)
