"""This very machine: looked at, captured and looked at again; and tools that misbehave."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import archspec.cpu
import pytest
from discover_roots import DATA, make, system_of

from mvstack.discover import capture, look
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
    capture(tmp_path / "captured")
    assert look(tmp_path / "captured") == look()


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir() if path.is_dir()))
def test_capture_of_a_captured_root_is_the_same(tmp_path, name):
    capture(tmp_path / "again", DATA / name)
    assert look(tmp_path / "again") == look(DATA / name)


def test_capture_keeps_links_denials_and_failures(tmp_path):
    root = tmp_path / "root"
    make(
        root,
        {
            "/sys/devices/0000:4d:00.0/vendor": "0x10de",
            "/mvstack-capture/denied.txt": "/etc/os-release\n",
            "/mvstack-capture/scontrol-show-config.txt": "no controller\n",
            "/mvstack-capture/scontrol-show-config.txt.status": "1\n",
            "/mvstack-capture/sinfo---version.txt": "slurm 23.02.1\n",
            "/mvstack-capture/lsid.txt": "",
            "/mvstack-capture/lsid.txt.status": "timeout\n",
        },
        {
            "/sys/class/drm/card0/device": "../../../devices/0000:4d:00.0",
            "/sys/devices/0000:4d:00.0/driver": "../nouveau",
        },
    )
    capture(tmp_path / "again", root)
    machine = look(tmp_path / "again")
    assert machine == look(root)
    text = "\n".join(machine.notes)
    for words in ("no permission to read /etc/os-release", "nouveau", "lsid did not answer"):
        assert words in text
    assert "no controller" in text


def test_capture_holds_only_what_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "do-not-tell")
    capture(tmp_path / "captured")
    for path in (tmp_path / "captured").rglob("*"):
        assert not path.is_file() or b"do-not-tell" not in path.read_bytes()
    assert not (tmp_path / "captured/etc/passwd").exists()


def test_capture_leaves_out_slurms_configuration_and_serial_numbers(tmp_path):
    root = tmp_path / "root"
    shutil.copytree(DATA / "gpu-v100", root, symlinks=True)
    config = root / "mvstack-capture/scontrol-show-config.txt"
    config.write_text(config.read_text() + "AccountingStorageHost = db.private\n")
    capture(tmp_path / "again", root)
    kept = "".join(p.read_text() for p in (tmp_path / "again/mvstack-capture").iterdir())
    assert "db.private" not in kept and "GPU-0000" not in kept
    assert look(tmp_path / "again") == look(root)


def test_capture_refuses_a_folder_in_use(tmp_path):
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(InvalidInput) as caught:
        capture(tmp_path)
    assert "new or empty folder" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(InvalidInput):
        capture(tmp_path / "kept")


def test_capture_where_nothing_can_be_written():
    with pytest.raises(InvalidInput) as caught:
        capture(Path("/proc/nowhere/captured"))
    assert "cannot be written" in str(caught.value)


def test_tools_are_not_run_for_another_root(tmp_path, monkeypatch):
    marker = tmp_path / "ran"
    tool = tmp_path / "bin" / "sinfo"
    make(tmp_path, {"/bin/sinfo": f"#!/bin/sh\ntouch {marker}\necho slurm 1.2.3\n"})
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    look(tmp_path)
    assert not marker.exists()
    assert View(Path("/")).say("sinfo") == "slurm 1.2.3\n"
    assert marker.exists()


def test_tool_of_this_machine_is_asked(tmp_path, monkeypatch):
    make(
        tmp_path,
        {
            "/sinfo": "#!/bin/sh\necho slurm 23.11.4\n",
            "/scontrol": "#!/bin/sh\necho 'MpiDefault = pmix'\n",
            "/srun": "#!/bin/sh\nprintf 'MPI plugin types are...\\n\\tpmix\\n' >&2\n",
        },
    )
    for tool in tmp_path.iterdir():
        tool.chmod(0o755)
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
    make(tmp_path, {"/broken": "\x7fELF nothing"})
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
