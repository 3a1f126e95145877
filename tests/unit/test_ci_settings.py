"""A site's settings file: every error with its line, nothing made from a wrong one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mvstack.ci.sites import check_project, pinned, project_of
from mvstack.model.ci import Settings, load_settings
from mvstack.support.errors import InvalidInput, MvstackError

SHORTEST = "systems:\n  - {system: alps, staging: /shared/staging, compilers: /shared/compilers}\n"


def written(folder: Path, text: str) -> Path:
    file = folder / "mvstack-ci.yaml"
    file.write_text(text)
    return file


def wrong(folder: Path, text: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_settings(written(folder, text))
    return str(caught.value)


def test_the_shortest_that_works(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, SHORTEST))
    assert settings.approve and settings.tree_length == 96
    check_project(tmp_path, Path("mvstack-ci.yaml"), settings)


def test_an_unknown_field_is_named_with_its_line_and_the_nearest(tmp_path: Path) -> None:
    said = wrong(tmp_path, SHORTEST + "cache: [/c]\n")
    assert "mvstack-ci.yaml:3" in said and "caches" in said


def test_every_error_is_told_at_once(tmp_path: Path) -> None:
    said = wrong(tmp_path, "systems:\n  - {system: alps, staging: shared}\napprove: maybe\n")
    assert "mvstack-ci.yaml:2" in said and "mvstack-ci.yaml:3" in said


def test_a_root_without_a_cache_to_push_to_is_refused(tmp_path: Path) -> None:
    said = wrong(tmp_path, "systems:\n  - {system: alps, staging: /s, root: /apps}\n")
    assert "push" in said


def test_an_entry_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    said = wrong(tmp_path, SHORTEST + "  - {system: alps, staging: /s}\n")
    assert "alps" in said and "twice" in said


@pytest.mark.parametrize("word", ["a b", "$(reboot)", "`id`", "a'b", 'a"b', "a\\b", ""])
def test_words_that_a_shell_would_take_apart_are_refused(tmp_path: Path, word: str) -> None:
    text = yaml.safe_dump({"systems": [{"system": word, "staging": "/s"}], "caches": [word]})
    assert "mvstack-ci.yaml" in wrong(tmp_path, text)


def test_what_the_settings_name_must_be_there(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "systems:\n"
        "  - {system: systems/none.yaml, staging: /s}\n"
        "  - {system: alps, partitions: [gpu], staging: /s}\n"
        "trust: [keys/none.asc]\n",
    )
    with pytest.raises(MvstackError) as caught:
        check_project(tmp_path, file, load_settings(file))
    said = str(caught.value)
    assert "systems/none.yaml" in said and "gpu" in said and "keys/none.asc" in said


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*Settings.model_fields, "system", "staging", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_whatever_the_file_holds_it_is_settings_or_an_error_of_ours(data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = written(Path(folder), yaml.safe_dump(data, allow_unicode=True))
        try:
            assert load_settings(file).systems
        except InvalidInput as error:
            assert "mvstack-ci.yaml" in str(error)


def test_the_pin_is_read_from_the_include(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    file = tmp_path / ".gitlab-ci.yml"
    assert pinned(tmp_path) == ""
    file.write_text(f"include:\n  - ref: &stack {commit}\n    inputs: {{stack_commit: *stack}}\n")
    assert pinned(tmp_path) == commit
    file.write_text(f'include:\n  - inputs:\n      stack_commit: "{commit}"\n')
    assert pinned(tmp_path) == commit
    file.write_text("include:\n  - inputs: {stack_commit: main}\n")
    assert pinned(tmp_path) == ""


def test_the_project_of_settings_is_the_repository_they_lie_in(tmp_path: Path) -> None:
    file = tmp_path / "ci" / "mvstack-ci.yaml"
    file.parent.mkdir()
    file.write_text(SHORTEST)
    assert project_of(file) == (file.parent, Path("mvstack-ci.yaml"))
    (tmp_path / ".git").mkdir()
    assert project_of(file) == (tmp_path, Path("ci/mvstack-ci.yaml"))


def test_a_folder_that_packages_cannot_be_moved_to_is_told_beforehand(tmp_path: Path) -> None:
    long = "/shared/" + "x" * 70
    file = written(tmp_path, f"systems:\n  - {{system: alps, staging: {long}}}\n")
    with pytest.raises(MvstackError) as caught:
        check_project(tmp_path, file, load_settings(file))
    assert "staging of alps is too long by" in str(caught.value)
