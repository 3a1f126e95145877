"""Versions of images: their numbers, their states, and what is left."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.image import store
from mvstack.support.errors import InvalidInput, Locked, Refused

RELEASE, IMAGE = "2026.11", "a-b"


def begin(folder: Path, inputs: str = "x", asked: str | None = None) -> store.Version:
    return store.begin(folder, RELEASE, IMAGE, inputs, asked, {"commit": "c"})


def test_numbers_go_up_and_an_unfinished_one_of_the_same_inputs_goes_on(tmp_path: Path) -> None:
    first = begin(tmp_path)
    assert first.version == "2026.11.0"
    assert begin(tmp_path).data["build_id"] == first.data["build_id"]
    other = begin(tmp_path, "y")
    assert other.version == "2026.11.1"
    first.set(state="candidate")
    assert begin(tmp_path).version == "2026.11.2"


def test_ten_comes_after_nine(tmp_path: Path) -> None:
    for number in range(11):
        begin(tmp_path, asked=f"2026.11.{number}").set(state="candidate")
    assert begin(tmp_path).version == "2026.11.11"
    assert [one.version for one in store.versions(tmp_path)][-2:] == ["2026.11.10", "2026.11.11"]


def test_a_whole_version_is_never_begun_again(tmp_path: Path) -> None:
    begin(tmp_path).set(state="tested")
    with pytest.raises(Refused, match="is there already"):
        begin(tmp_path, asked="2026.11.0")


def test_a_version_begun_from_other_inputs_is_not_gone_on_with(tmp_path: Path) -> None:
    begin(tmp_path)
    with pytest.raises(Refused, match="other inputs"):
        begin(tmp_path, "y", asked="2026.11.0")


@given(st.text(max_size=20))
def test_what_is_no_version_is_refused(tmp_path_factory: pytest.TempPathFactory, word: str) -> None:
    folder = tmp_path_factory.mktemp("images")
    head, _, number = word.rpartition(".")
    if head == RELEASE and re.fullmatch("0|[1-9][0-9]{0,5}", number):
        assert begin(folder, asked=word).version == word
        return
    with pytest.raises(InvalidInput, match="not a version"):
        begin(folder, asked=word)
    assert not list(folder.iterdir())


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    version = begin(tmp_path)
    assert not store.busy(version)
    with store.locked(version):
        assert store.busy(version)
        with pytest.raises(Locked), store.locked(version):
            pass


def test_the_newest_of_a_state_is_found(tmp_path: Path) -> None:
    begin(tmp_path).set(state="tested")
    begin(tmp_path).set(state="candidate")
    assert store.find(tmp_path, IMAGE, None, ("tested",)).version == "2026.11.0"
    assert store.find(tmp_path, IMAGE, None, ("candidate", "tested")).version == "2026.11.1"
    with pytest.raises(Refused, match=r"2026\.11\.1 \(candidate\)"):
        store.find(tmp_path, IMAGE, "2026.11.1", ("published",))


def test_a_damaged_record_hides_only_itself(tmp_path: Path) -> None:
    one = begin(tmp_path)
    one.set(state="candidate")
    two = begin(tmp_path)
    (one.folder / "image.json").write_text("{")
    assert [version.version for version in store.versions(tmp_path)] == [two.version]
