"""Captures of machines: written, read, and what is left out of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from discover_roots import MACHINES, kept, make, tool
from hypothesis import given
from hypothesis import strategies as st

from mvstack.discover import capture, look
from mvstack.discover.capture import Capture, read_capture, write_capture
from mvstack.discover.look import examine
from mvstack.discover.machine import REQUIRED
from mvstack.discover.view import View
from mvstack.support.errors import InvalidInput


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


def test_capture_leaves_out_slurms_configuration_and_serial_numbers(tmp_path):
    root = kept("gpu-v100")
    root.outputs["scontrol show config"] += "AccountingStorageHost = db.private\n"
    root.outputs["nvidia-smi -L"] = "GPU 0: V100 (UUID: GPU-0000-1)\n" * 4
    again = again_of(root, tmp_path)
    text = (tmp_path / "again.yaml").read_text()
    assert "db.private" not in text and "GPU-0000" not in text
    assert look(again) == look(root)


def test_of_later_processors_only_their_place_is_kept(tmp_path):
    block = "processor: {0}\nvendor_id: GenuineIntel\nphysical id: 0\ncore id: {0}\n"
    root = make(Capture(), {"/proc/cpuinfo": "\n".join(map(block.format, (0, 1)))})
    machine = look(again_of(root, tmp_path))
    assert machine == look(root)
    assert machine.cores == 2
    assert (tmp_path / "again.yaml").read_text().count("GenuineIntel") == 1


def test_capture_refuses_a_name_in_use(tmp_path):
    (tmp_path / "kept").write_text("mine")
    for name in ("kept", "."):
        with pytest.raises(InvalidInput) as caught:
            capture(tmp_path / name)
        assert "already" in str(caught.value)
    assert (tmp_path / "kept").read_text() == "mine"


def test_required_fields_are_fields():
    assert set(REQUIRED) <= set(type(look(Path("/nonexistent"))).model_fields)
