"""The words in a module's help are for people: they change without a build."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from mvstack.plan.usage import NAME, refresh, usage_of
from mvstack.render.templates import template
from mvstack.support import hashes

MODULE = """help([==[

Description
===========
An MPI.


Usage
=====
On here/cpu start programs with

    mpiexec -n RANKS ./PROGRAM


More information
================
 - Homepage: https://example.org/
]==])

whatis([==[Description: An MPI.]==])
local root = "/opt/here"
"""
LINES = st.text(
    st.characters(exclude_categories=("C", "Zl", "Zp"), exclude_characters="]=\x85"), max_size=60
)


def test_the_words_are_replaced_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "4.0.lua"
    file.write_text(MODULE)
    assert refresh(file, "On there/gpu start programs with\n\n    srun -n RANKS ./PROGRAM")
    text = file.read_text()
    assert "here/cpu" not in text and "\n    srun -n RANKS ./PROGRAM\n" in text
    assert text.startswith(MODULE[: MODULE.index("On here")])
    assert text.endswith(MODULE[MODULE.index("\n\n\nMore information") :])
    assert not refresh(file, "On there/gpu start programs with\n\n    srun -n RANKS ./PROGRAM")


def test_a_help_that_ends_with_the_usage_is_replaced_too(tmp_path: Path) -> None:
    file = tmp_path / "4.0.lua"
    cut = MODULE[: MODULE.index("\n\n\nMore")] + "\n]==])\nlocal root = 1\n"
    file.write_text(cut)
    assert refresh(file, "other")
    assert file.read_text().endswith("Usage\n=====\nother\n\n]==])\nlocal root = 1\n")


def test_what_was_tuned_is_the_end_of_a_module_once_and_goes_again(tmp_path: Path) -> None:
    file = tmp_path / "4.0.lua"
    file.write_text(MODULE)
    for value in ("16384", "65536"):
        row = {"UCX_RNDV_THRESH": {"value": value}, "UCX_TLS": {"value": "posix,self"}}
        build = SimpleNamespace(module="mvapich/4.0-ucx", environment={}, tuning=row)
        tuned = template("tuned.lua", build=build)
        assert refresh(file, "", tuned)
        assert file.read_text() == f"{MODULE}\n{tuned.strip()}\n"
        assert not refresh(file, "", tuned)
    assert refresh(file, "")
    assert file.read_text() == MODULE


def test_a_module_without_usage_stays(tmp_path: Path) -> None:
    file = tmp_path / "1.0.lua"
    file.write_text("help([==[\nDescription\n===========\nNone.\n]==])\n")
    before = file.read_bytes()
    assert not refresh(file, "words")
    assert file.read_bytes() == before


@given(st.lists(LINES, min_size=1, max_size=5).map("\n".join).map(str.strip).filter(bool))
def test_whatever_is_put_in_is_what_stands_there(usage: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "4.0.lua"
        file.write_text(MODULE)
        refresh(file, usage)
        assert f"Usage\n=====\n{usage}\n" in file.read_text()
        assert not refresh(file, usage)


def test_usage_is_read_from_an_easyconfig_and_is_no_part_of_its_hash() -> None:
    one = "name = 'X'\nusage = 'On a/b'\n"
    other = "name = 'X'\nusage = 'On c/d'\n"
    assert usage_of(one) == "On a/b"
    assert usage_of("name = 'X'\n") == ""
    assert hashes.normalised(one) != hashes.normalised(other)
    assert hashes.normalised(one, without=NAME) == hashes.normalised(other, without=NAME)
    assert hashes.normalised(one, without=NAME) != hashes.normalised("name = 'Y'\n", without=NAME)
