"""The caches of Spack's indexes: one for each content of the package repositories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mvstack.builders.spack.repositories import UNUSED, cache_of, contents, prepare
from mvstack.support.errors import Missing

INDEX = "builtin-specfile_v5-index.json"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "one")


def make(folder: Path) -> Path:
    (folder / "packages" / "zlib").mkdir(parents=True)
    (folder / "packages" / "zlib" / "package.py").write_text("class Zlib: pass\n")
    (folder / "packages" / "zlib" / "fix.patch").write_text("--- a\n")
    (folder / "repo.yaml").write_text("repo: {namespace: mvapich_stack}\n")
    return folder


def test_what_spack_and_editors_leave_there_does_not_count(repository: Path) -> None:
    before = contents(repository)
    (repository / "packages" / "zlib" / "__pycache__").mkdir()
    (repository / "packages" / "zlib" / "__pycache__" / "package.py").write_text("")
    (repository / "packages" / "zlib" / "package.py~").write_text("")
    assert contents(repository) == before
    assert len(before) == 3


def test_the_same_content_has_the_same_cache_wherever_it_lies(
    repository: Path, tmp_path: Path
) -> None:
    other = make(tmp_path / "other")
    caches = tmp_path / "caches"
    assert cache_of(caches, {"a": repository}) == cache_of(caches, {"a": other})


@pytest.mark.parametrize("name", ["package.py", "fix.patch", "new.py", "package.py moved"])
def test_another_content_has_another_cache_even_with_older_dates(
    repository: Path, tmp_path: Path, name: str
) -> None:
    caches = tmp_path / "caches"
    before = cache_of(caches, {"a": repository})
    folder = repository / "packages" / "zlib"
    if name == "package.py moved":
        folder.rename(folder.parent / "zlib_ng")
    else:
        (folder / name).write_text("# changed\n")
        os.utime(folder / name, (0, 0))
    assert cache_of(caches, {"a": repository}) != before


def test_a_repository_of_the_site_counts_too(repository: Path, tmp_path: Path) -> None:
    site = make(tmp_path / "site")
    caches = tmp_path / "caches"
    assert cache_of(caches, {"a": repository}) != cache_of(caches, {"a": repository, "site": site})


def test_the_pinned_index_is_taken_from_the_newest_neighbour_with_its_date(tmp_path: Path) -> None:
    for name, date in (("indexes-old", 1000), ("indexes-new", 2000)):
        file = tmp_path / name / "tags" / INDEX
        file.parent.mkdir(parents=True)
        file.write_text(name)
        (file.parent / "mvapich_stack-specfile_v5-index.json").write_text("not for others")
        os.utime(file, (date, date))
    prepare(tmp_path / "indexes-mine", pinned=["builtin"])
    taken = list((tmp_path / "indexes-mine").rglob("*.json"))
    assert [path.name for path in taken] == [INDEX]
    assert taken[0].read_text() == "indexes-new"
    assert taken[0].stat().st_mtime == 2000
    # what is there stays: Spack brings it up to date
    taken[0].write_text("mine")
    prepare(tmp_path / "indexes-mine", pinned=["builtin"])
    assert taken[0].read_text() == "mine"


def test_only_caches_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    for name in ("indexes-used", "indexes-unused", "concretization"):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    prepare(tmp_path / "indexes-used", pinned=["builtin"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["concretization", "indexes-used"]
    assert (tmp_path / "indexes-used").stat().st_mtime > UNUSED


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "caches").write_text("no folder")
    with pytest.raises(Missing) as caught:
        prepare(tmp_path / "caches" / "indexes-mine", pinned=["builtin"])
    (problem,) = caught.value.problems
    assert problem.where == str(tmp_path / "caches" / "indexes-mine")
    assert "--root" in problem.todo
