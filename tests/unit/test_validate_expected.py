"""The list of checks that is read from their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mvstack.errors import InvalidInput
from mvstack.validate.expected import expected_checks

CHECKS = Path(__file__).resolve().parents[1] / "reframe"


def names(folder: Path, *tags: str) -> list[str]:
    return sorted(
        " ".join([check.name, *(value for _, value in sorted(check.values))])
        for check in expected_checks(folder, list(tags))
    )


def test_the_checks_that_ship():
    smoke = [
        "Benchmark allreduce",
        "Benchmark bandwidth",
        "Benchmark latency",
        "Collectives",
        "Hello C",
        "Hello Fortran",
        "Identity",
        "MpiIo",
        "WorldSize 1",
        "WorldSize 2",
        "WorldSize 4",
    ]
    assert names(CHECKS, "smoke") == smoke
    assert names(CHECKS) == sorted([*smoke, "Hpcc"])
    assert names(CHECKS, "nightly") == ["Hpcc"]
    assert all(check.description for check in expected_checks(CHECKS, []))


def write(folder: Path, text: str) -> Path:
    (folder / "some.py").write_text(text)
    return folder


def test_parameters_multiply(tmp_path):
    text = (
        "@rfm.simple_test\nclass A(Base):\n    x = parameter([1, 2])\n    y = parameter(['a', 'b'])"
        "\n    tags = {'t'}\n\nclass Helper(Base):\n    tags = {'t'}\n"
    )
    assert names(write(tmp_path, text)) == ["A 1 a", "A 1 b", "A 2 a", "A 2 b"]
    assert names(tmp_path, "other") == []


@pytest.mark.parametrize("line", ["x = parameter(range(3))", "tags = TAGS"])
def test_what_cannot_be_read_is_an_error_with_its_line(tmp_path, line):
    folder = write(tmp_path, f"@simple_test\nclass A(Base):\n    {line}\n")
    with pytest.raises(InvalidInput, match=r"some.py:3: .*must be literals"):
        expected_checks(folder, [])
