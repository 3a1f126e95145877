"""System files: every error at once, each with its line, what is allowed and the nearest word."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.model.load import load_policy, load_release, load_system, parse_system, system_names
from mvstack.support.errors import InvalidInput
from mvstack.support.words import nearest

GOOD = """\
name: mine
os: rocky9
partitions:
  cpu:
    cores: 64
    memory_gb: 512
    target: zen3
    fabric: infiniband
    launcher: srun
    compiler: {name: gcc, version: "12.2.0", origin: system}
"""


def problems(text):
    with pytest.raises(InvalidInput) as caught:
        parse_system(text, Path("mine.yaml"))
    return caught.value.problems


def test_a_small_file_is_enough():
    system = parse_system(GOOD, Path("mine.yaml"))
    assert system.partitions["cpu"].gpu == "none"
    assert system.os_of("cpu") == "rocky9"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("cma: no", "cma: true or false is expected"),
        ("memory_gb: 256 GB", "memory_gb: a whole number, without quotes or a unit, is expected"),
        ("file_systems: lustre", "file_systems: a list such as [one, two] is expected"),
        ("title: 2024-01-01", "title: text is expected and YAML reads this as a date"),
    ],
)
def test_a_wrong_type_is_told_in_our_words(line, says):
    text = GOOD.replace("    memory_gb: 512\n", "").replace("    cores", f"    {line}\n    cores")
    assert [one.message for one in problems(text)] == [says]


def test_standard_input_that_is_no_text_is_told(monkeypatch):
    given = io.BytesIO(b"a: b\nname: caf\xe9\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given, "utf-8"))
    with pytest.raises(InvalidInput, match=r"^<standard input>:2: is not UTF-8 text"):
        load_system("-")


def test_all_errors_of_a_file_at_once_in_the_order_of_its_lines():
    text = GOOD.replace("fabric:", "fabrik:").replace("zen3", "zen33").replace("srun", "slurm")
    found = problems(text)
    assert [p.where.split(":")[1] for p in found] == ["4", "7", "8", "9"]
    unknown = found[2]
    assert unknown.message == "fabrik: unknown field; did you mean fabric?"
    assert unknown.found == "fabrik: infiniband"
    assert "fabric" in unknown.allowed and unknown.nearest == "fabric"
    assert "partitions: cpu" in unknown.where


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"12.2.0"', "12.2"), "text is expected and YAML reads this as a float"),
        (("infiniband", "infinband"), "did you mean infiniband?"),
        (("zen3", "zen33"), "did you mean zen3?"),
        (("cores: 64", "cores: 0"), "greater than or equal to 1"),
        (("cores: 64", "cores: many"), "cores"),
        (("launcher: srun", "launcher: srun\n    gpu: nvidia"), "contradict each other"),
        (("cores: 64", "cores: 64\n    gpu_arch: sm_80"), "contradict each other"),
        (
            ("cores: 64", "cores: 64\n    gpu: amd\n    gpus: 8\n    gpu_arch: sm_80"),
            "gpu: amd and gpu_arch: sm_80 contradict each other",
        ),
        (
            ("cores: 64", "cores: 64\n    gpu: nvidia\n    gpus: 8\n    gpu_arch: gfx90a"),
            "contradict",
        ),
        (("cores: 64", "cores: 64\n    gpu_arch: MI250X"), "such as sm_80 or gfx90a, is expected"),
        (("os: rocky9\n", ""), "os must be given"),
        (("name: mine", "name: My Machine"), "name"),
        (("name: mine", "name: mine\nconfirm: {partitions.gpu.nodes: no}"), "no such field"),
    ],
)
def test_each_mistake_is_told(change, says):
    assert any(says in problem.message for problem in problems(GOOD.replace(*change)))


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n", "3\n"])
def test_a_file_that_is_no_mapping(text):
    assert "a mapping of fields is expected" in problems(text)[0].message


def test_an_unknown_system_names_the_nearest():
    with pytest.raises(InvalidInput) as caught:
        load_system("expance")
    assert caught.value.problems[0].nearest == "expanse"


def test_the_files_of_the_repository_are_right():
    assert {"local", "expanse", "azure-hbv4", "aws-hpc7a", "alps"} <= set(system_names())
    for name in system_names():
        load_system(name)
    load_policy()
    assert load_release().name == "2026.11"


def test_what_is_public_knowledge_is_marked_for_the_site():
    for name in ("expanse", "azure-hbv4", "aws-hpc7a", "alps"):
        assert load_system(name).confirm


@given(st.text(max_size=60), st.sampled_from(GOOD.splitlines()))
def test_no_line_replaced_by_anything_gives_a_traceback(junk, line):
    try:
        parse_system(GOOD.replace(line, junk), Path("mine.yaml"))
    except InvalidInput as error:
        assert all(problem.message for problem in error.problems)


@given(st.sampled_from(["infiniband", "slingshot-11", "omni-path", "rockport"]), st.data())
def test_one_letter_left_out_is_still_understood(word, data):
    at = data.draw(st.integers(0, len(word) - 1))
    fabrics = ["infiniband", "slingshot-11", "omni-path", "rockport", "tcp", "shm", "efa"]
    assert nearest(word[:at] + word[at + 1 :], fabrics) == word
