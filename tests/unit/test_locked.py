"""environments/record.jsonl says *concretized* of what is as it was when Spack solved it."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from locking import holds, merged, offered, plan_of, read, written

from mvstack.model.load import load_release
from mvstack.model.spack import spack_pins
from mvstack.plan.spack import MENDS, RECIPES
from mvstack.report import offers, seen
from mvstack.report.seen import Locked, key_of
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA

AGAIN = "tests/spack/lock_systems locks again what changed; with --drop it drops the rows"


def row(title: str, **changed: object) -> Locked:
    """A row that holds, but for what is ``changed``."""
    plan = plan_of(title)
    values = {
        "partition": title,
        "release": plan.release,
        "date": "2026-11-23",
        "of": {"os": plan.os},
        "recipes": ["mvapich"],
        "key": key_of(plan, ["mvapich"]),
    }
    return Locked.model_validate({**values, **changed})


def test_every_row_is_of_an_environment_as_it_is_now() -> None:
    assert [one.partition for one in read() if not holds(one)] == [], AGAIN


def test_the_record_is_as_the_tool_writes_it() -> None:
    rows = read()
    assert seen.LOCKED.read_text() == written(merged([], rows)), "edited by hand"
    known = [*offered(), *(one.partition for one in rows if one.release != load_release().name)]
    assert {one.partition for one in rows} <= set(known)


def test_readme_says_how_many_partitions_have_a_lock() -> None:
    said = re.search(r"(\d+) of (\d+) partitions have one", (DATA / "README.md").read_text())
    now = [one for one in read() if one.release == load_release().name]
    assert said and said.groups() == (str(len(now)), str(len(offered())))


def test_what_decides_a_lock_changes_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("expanse/cpu")
    key = key_of(plan, ["mvapich"])
    elsewhere = replace(plan, root="/elsewhere", tree="/elsewhere/tree")
    assert key_of(elsewhere, ["mvapich"]) == key, "where a tree stands decides nothing"
    assert key_of(replace(plan, title="Another"), ["mvapich"]) == key, "nor do words"
    others = [
        replace(plan, target="zen"),
        replace(plan, os="rocky9"),
        replace(plan, packages=[]),
        replace(plan, compiler={**plan.compiler, "version": "11.5.0"}),
        replace(plan, mpi=[replace(plan.mpi[0], version="4.1")]),
    ]
    assert len({key, *(key_of(one, ["mvapich"]) for one in others)}) == len(others) + 1


def test_what_a_recipe_declares_changes_the_keys_of_its_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods and patches build what was solved; other recipes count when they come or go."""
    shutil.copytree(DATA / "spack-repo", tmp_path / "spack-repo")
    repository = tmp_path / RECIPES
    plan, file = plan_of("expanse/cpu"), repository / "packages" / "mvapich" / "package.py"
    key, text = key_of(plan, ["mvapich"]), file.read_text()
    monkeypatch.setattr(seen, "DATA", tmp_path)
    assert key_of(plan, ["mvapich"]) == key
    method = "    def configure_args(self):\n"
    assert method in text
    for same in (
        f"{text}# a word\n",
        text.replace(method, f"{method}        print('more')\n"),
        text.replace(method, f'    patch("more.patch", when="@4.0")\n\n{method}'),
    ):
        file.write_text(same)
        assert key_of(plan, ["mvapich"]) == key
    file.write_text(text.replace(method, f'    conflicts("+omb")\n\n{method}'))
    changed = key_of(plan, ["mvapich"])
    assert changed != key
    file.write_text(text)
    other = repository / "packages" / "q_chem" / "package.py"
    other.write_text(other.read_text() + "print('more')\n")
    assert key_of(plan, ["mvapich"]) == key
    shutil.copytree(file.parent, tmp_path / MENDS / "packages" / "ucx")
    assert key_of(plan, ["mvapich"]) not in (key, changed)


def test_another_spack_changes_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, pins = plan_of("alps/cpu"), spack_pins()
    key = key_of(plan, [])
    for name in ("spack", "packages"):
        pin = getattr(pins, name).model_copy(update={"commit": "0" * 40})
        other = pins.model_copy(update={name: pin})
        monkeypatch.setattr(seen, "spack_pins", lambda it=other: it)
        assert key_of(plan, []) != key, name


def test_a_partition_is_concretized_as_long_as_its_lock_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row("expanse/cpu"), row("frontera/cpu", key="0" * 16)]
    monkeypatch.setattr(seen, "read_rows", lambda *_: rows)
    monkeypatch.setattr(seen, "read_record", list)
    said = {one.title: one.seen for one in offers.planned().every()}
    assert said["expanse/cpu"].startswith("concretized; 1 of ")
    assert said["frontera/cpu"] == "explained"
    assert said["expanse/gpu"] == "rendered"
    assert sum(one.startswith("concretized") for one in said.values()) == 1


def test_a_row_of_what_is_offered_no_more_does_not_hold() -> None:
    assert holds(row("expanse/cpu"))
    assert not holds(row("expanse/cpu", partition="expanse/large"))
    assert not holds(row("expanse/cpu", partition="frontera/cpu"))
    assert not holds(row("expanse/cpu", recipes=["ucx"]))


def test_a_damaged_row_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_text(written([row("expanse/cpu")]) + '{"partition": "alps/cpu"}\n')
    with pytest.raises(InvalidInput, match="not a row of the record") as caught:
        read(path)
    assert caught.value.problems[0].where.endswith("record.jsonl:2")


def test_a_newer_row_takes_the_place_of_an_older_one() -> None:
    old, new = row("expanse/cpu"), row("expanse/cpu", date="2026-12-01")
    assert merged([row("frontera/cpu"), old], [new]) == [new, row("frontera/cpu")]
