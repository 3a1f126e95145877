"""What the clouds share: names, times from a build's id, and the errors that refuse a version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.image.clouds import image_name, must_be_candidate, ours, when
from mvstack.support.errors import Refused


def test_an_image_is_called_after_partition_and_version() -> None:
    assert image_name("azure-hbv4-hpc", "2026.11.0") == "mvapich-stack-azure-hbv4-hpc-2026.11.0"


def test_a_builds_id_says_when_it_began() -> None:
    assert when("20261121T211500Z-3fa9c1") == "2026-11-21T21:15:00Z"
    assert when("20261341T211500Z-3fa9c1") == ""  # no such day
    assert when("") == ""


@given(st.text())
def test_any_tag_may_stand_where_a_builds_id_should(text: str) -> None:
    assert when(text) == "" or text[8] == "T"


def test_only_our_own_tag_makes_a_thing_ours() -> None:
    assert ours({"mvapich-stack": "image"})
    assert not ours({"mvapich-stack": "cluster"}) and not ours({"mvapich-stack-state": "building"})


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("published", "is published already"),
        ("building", "is no candidate"),
        ("", "is no candidate"),
        ("anything", "is no candidate"),
    ],
)
def test_only_a_candidate_is_published(state: str, why: str) -> None:
    must_be_candidate("image", "2026.11.0", "candidate", "here")
    with pytest.raises(Refused, match=why) as caught:
        must_be_candidate("image", "2026.11.0", state, "here")
    assert caught.value.exit_code == 4
