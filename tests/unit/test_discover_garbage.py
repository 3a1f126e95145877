"""Whatever a file, a name or a tool's output holds: nothing is raised and the YAML stays valid."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from discover_roots import DATA, MACHINES, data_of, kept, make, system_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mvstack.discover import look
from mvstack.discover.capture import Capture
from mvstack.discover.cpu import cpu_list
from mvstack.discover.libraries import providers, transports
from mvstack.discover.machine import Machine
from mvstack.discover.scheduler import slurm_plugins
from mvstack.support.errors import InvalidInput

SLOW = settings(suppress_health_check=list(HealthCheck))


PLACES = [
    (name, part, key)
    for name in MACHINES
    for part in ("files", "outputs", "tools", "environment", "links")
    for key in getattr(kept(name), part)
]


def holds(machine: Machine) -> None:
    """True of any machine found: notes are lines, and its file is valid or says what is missing."""
    assert all(note.isprintable() for note in machine.notes)
    assert json.loads(machine.model_dump_json())["cores"] == machine.cores
    if machine.problems():
        assert data_of(machine)["name"] == "local"
    else:
        system_of(machine)


@pytest.mark.parametrize("name", MACHINES)
def test_any_one_thing_missing(name):
    for part, key in [(part, key) for one, part, key in PLACES if one == name]:
        root = kept(name)
        del getattr(root, part)[key]
        holds(look(root))


words = st.sampled_from(
    ["", "null", "true", "-1", "0", "9" * 4000, "4: ACTIVE", "\0", "..", "a: b # c", "\ufffd" * 9]
)
garbage = st.one_of(st.text(max_size=200), words)


@SLOW
@given(which=st.sampled_from(PLACES), content=garbage)
def test_garbage_in_any_place(which, content):
    name, part, key = which
    root = kept(name)
    getattr(root, part)[key] = content
    holds(look(root))


@SLOW
@given(which=st.sampled_from(PLACES), data=st.data())
def test_a_text_cut_or_with_a_piece_replaced(which, data):
    name, part, key = which
    root = kept(name)
    text = getattr(root, part)[key]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 40)))
    getattr(root, part)[key] = text[:begin] + data.draw(garbage) + text[end:]
    holds(look(root))


@SLOW
@given(
    which=st.sampled_from(MACHINES), data=st.data(), piece=st.one_of(st.binary(), st.just(b"*a"))
)
def test_a_capture_that_was_damaged_on_its_way(tmp_path, which, data, piece):
    whole = (DATA / f"{which}.yaml").read_bytes()
    at = data.draw(st.integers(0, len(whole)))
    file = tmp_path / "damaged.yaml"
    file.write_bytes(whole[:at] + piece + whole[at + len(piece) :])
    with suppress(InvalidInput):
        holds(look(file))


@SLOW
@given(content=st.binary(max_size=200), path=st.sampled_from(sorted(kept("opa").files)))
def test_bytes_that_are_no_text_in_a_file(tmp_path, content, path):
    file = tmp_path / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    holds(look(tmp_path))


names = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=40)


@SLOW
@given(name=names, driver=names, layer=names, state=names)
def test_any_name_of_a_device(name, driver, layer, state):
    assume(name not in (".", ".."))
    root = Capture()
    base = f"/sys/class/infiniband/{name}"
    make(
        root,
        {f"{base}/ports/1/link_layer": layer, f"{base}/ports/1/state": state},
        {f"{base}/device/driver": driver, f"/sys/class/drm/{name}/device": driver},
    )
    holds(look(root))


@given(text=st.text())
def test_readers_of_outputs_take_any_text(text):
    for word in [*providers(text), *transports(text), *slurm_plugins(text)]:
        assert word and word.isprintable()
    assert all(number >= 0 for number in cpu_list(text))


@given(numbers=st.sets(st.integers(0, 500), min_size=1))
def test_cpu_list_reads_what_the_kernel_writes(numbers):
    ordered = sorted(numbers)
    assert cpu_list(",".join(str(n) for n in ordered)) == numbers
    assert cpu_list(f"{ordered[0]}-{ordered[-1]}") == set(range(ordered[0], ordered[-1] + 1))
