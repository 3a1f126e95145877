"""A source that is packed from a git repository."""

from __future__ import annotations

import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from mvstack.sources import repositories
from mvstack.sources.fetch import Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import SourceError
from mvstack.support.files import sha256_of
from mvstack.support.git import environment


@pytest.fixture
def spec(tmp_path: Path) -> SourceSpec:
    """The file of the first of two commits of ``part``; its hash is not known yet."""
    clone, env = tmp_path / "part.git", environment()

    def git(*words: str) -> str:
        own = ["-c", "user.name=x", "-c", "user.email=x@example"]
        done = subprocess.run(
            ["git", "-C", clone, *own, *words], env=env, text=True, check=True, capture_output=True
        )
        return done.stdout.strip()

    clone.mkdir()
    git("init", "--quiet")
    commits = []
    for text in ("first", "second"):
        (clone / "file").write_text(text)
        git("add", "file")
        git("commit", "--quiet", "--message", text)
        commits.append(git("rev-parse", "HEAD"))
    where = {"url": f"file://{tmp_path}", "repo_name": "part", "clone_into": "inner"}
    return SourceSpec(
        *("Odd", "2.1", "part-2.1.tar.xz", ("0" * 64,)), git={**where, "commit": commits[0]}
    )


def test_the_commit_is_packed_and_its_bytes_are_held_to_the_recipe(
    tmp_path: Path, spec: SourceSpec
) -> None:
    fetcher = Fetcher(Store(tmp_path / "root" / "sources"), [])
    with pytest.raises(SourceError, match="does not have the hash that its recipe lists") as caught:
        fetcher.fetch(spec)
    found = caught.value.problems[0].found
    digest = found.removeprefix("sha256 ").split()[0]
    fetched = fetcher.fetch(replace(spec, hashes=(digest,)))
    assert fetched.upstream and sha256_of(fetched.path) == digest
    with tarfile.open(fetched.path) as tar:
        assert tar.getnames() == ["inner", "inner/file"]
        member = tar.extractfile("inner/file")
        assert member is not None and member.read() == b"first"
    assert fetcher.available(spec)


def test_a_repository_or_commit_that_is_not_there_is_told_in_gits_words(
    tmp_path: Path, spec: SourceSpec
) -> None:
    fetcher = Fetcher(Store(tmp_path / "root" / "sources"), [])
    away = replace(spec, git={**spec.git, "repo_name": "other"})
    with pytest.raises(SourceError, match=r"other\.git: fatal: .*does not"):
        fetcher.fetch(away)
    assert not fetcher.available(away) and not repositories.answers("file:///nowhere.git")
    with pytest.raises(SourceError, match=r"part\.git: .*"):
        fetcher.fetch(replace(spec, git={**spec.git, "commit": "f" * 40}))
