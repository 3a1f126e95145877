"""Whatever a file, a name or a tool's output holds: nothing is raised and the YAML stays valid."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from discover_roots import DATA, data_of, make, system_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mvstack.discover import look
from mvstack.discover.cpu import cpu_list
from mvstack.discover.libraries import providers, transports
from mvstack.discover.look import examine
from mvstack.discover.machine import Machine
from mvstack.discover.scheduler import slurm_plugins
from mvstack.discover.view import CAPTURE, View, capture_name

SLOW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
MACHINES = ("expanse-cpu", "gpu-v100", "aws-hpc7g", "alps", "mi250x-flux", "azure-hbv4")


def looked_at(name: str) -> list[str]:
    """Every file of a machine that discovery reads, and every output of a tool."""
    view = View(DATA / name)
    examine(view)
    outputs = [f"/{CAPTURE}/{output}" for output in view.seen.outputs]
    paths = [f"/{CAPTURE}/which-{capture_name(tool, [])}" for tool in view.seen.paths]
    return sorted({*view.seen.texts, *outputs, *paths, f"/{CAPTURE}/environment.txt"})


FILES = [(name, path) for name in MACHINES for path in looked_at(name)]


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roots")
    for name in MACHINES:
        shutil.copytree(DATA / name, folder / name, symlinks=True)
    return folder


@contextmanager
def replaced(file: Path, content: bytes):
    kept = file.read_bytes() if file.exists() else None
    file.write_bytes(content)
    try:
        yield
    finally:
        if kept is None:
            file.unlink()
        else:
            file.write_bytes(kept)


def holds(machine: Machine) -> None:
    """True of any machine found: notes are lines, and its file is valid or says what is missing."""
    assert all(note.isprintable() for note in machine.notes)
    assert json.loads(machine.model_dump_json())["cores"] == machine.cores
    if machine.problems():
        assert data_of(machine)["name"] == "local"
    else:
        system_of(machine)


@pytest.mark.parametrize("name", MACHINES)
def test_any_one_file_missing(roots, name):
    for path in looked_at(name):
        file = roots / name / path.lstrip("/")
        if file.exists():
            with replaced(file, b""):
                file.unlink()
                holds(look(roots / name))


words = st.sampled_from(
    [b"", b"null", b"true", b"-1", b"0", b"9" * 4000, b"4: ACTIVE", b"\0", b"..", b"a: b # c"]
)
garbage = st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode()), words)


@SLOW
@given(which=st.sampled_from(FILES), content=garbage)
def test_garbage_in_any_file(roots, which, content):
    name, path = which
    with replaced(roots / name / path.lstrip("/"), content):
        holds(look(roots / name))


@SLOW
@given(which=st.sampled_from(FILES), data=st.data())
def test_a_file_cut_or_with_a_piece_replaced(roots, which, data):
    name, path = which
    file = roots / name / path.lstrip("/")
    text = file.read_bytes() if file.exists() else b""
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 40)))
    piece = data.draw(garbage)
    with replaced(file, text[:begin] + piece + text[end:]):
        holds(look(roots / name))


names = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=40)


@SLOW
@given(name=names, driver=names, layer=names, state=names)
def test_any_name_of_a_device(tmp_path_factory, name, driver, layer, state):
    assume(name not in (".", ".."))
    root = tmp_path_factory.mktemp("named")
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
