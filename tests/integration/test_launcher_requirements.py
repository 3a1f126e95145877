"""The pins: whole, hashed, free of hosts, and those that pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
FILES = ("build.txt", "core.txt", "runtime.txt", "images.txt", "node.txt", "test.txt")
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+)(?P<marker> ;[^\\]+)? \\$")


def pins(name: str) -> dict[str, str]:
    lines = (TOP / "requirements" / name).read_text().splitlines()
    return {m["name"]: m["version"] for line in lines if (m := PIN.match(line))}


def normal(requirement: str) -> str:
    name = re.split(r"[^A-Za-z0-9._-]", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_pin_a_hash_or_a_comment(name: str) -> None:
    previous = ""
    for line in (TOP / "requirements" / name).read_text().splitlines():
        text = line.strip()
        kind = "pin" if PIN.match(line) else "hash" if text.startswith("--hash=sha256:") else "#"
        assert kind != "#" or text.startswith("#"), line
        assert (previous == "pin") <= (kind == "hash"), f"a pin without a hash before: {line}"
        assert "://" not in line
        previous = kind


def test_all_that_pyproject_names_is_pinned() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    assert {normal(one) for one in project["dependencies"]} <= pins("runtime.txt").keys()
    known = pins("runtime.txt").keys()
    for extra in ("images", "node", "test"):
        known |= pins(f"{extra}.txt").keys()
        assert {normal(one) for one in project["optional-dependencies"][extra]} <= known


def test_no_file_asks_for_another_version_than_the_one_before_it() -> None:
    for first, second in (
        ("runtime.txt", "core.txt"),
        ("runtime.txt", "images.txt"),
        ("runtime.txt", "test.txt"),
        ("images.txt", "test.txt"),
        ("build.txt", "runtime.txt"),
    ):
        ours, theirs = pins(first), pins(second)
        assert {n: ours[n] for n in ours.keys() & theirs} == {
            n: theirs[n] for n in ours.keys() & theirs
        }


def test_versions_that_must_be_these() -> None:
    exact = (TOP / "requirements" / "exact.txt").read_text()
    wanted = dict(re.findall(r"^([a-z-]+)==(\S+) +# \S", exact, re.M))
    assert wanted.keys() == {"easybuild", "reframe-hpc", "clingo", "python-dateutil"}
    assert pins("spack.txt")["clingo"] == wanted.pop("clingo")
    runtime = pins("runtime.txt")
    assert wanted.items() <= runtime.items()
    parts = {name: v for name, v in runtime.items() if name.startswith("easybuild-")}
    assert set(parts.values()) == {wanted["easybuild"]}
