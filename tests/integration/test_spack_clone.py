"""The pinned clones: whole or not at all, at the pinned commit or refused, and what to do else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mvstack.builders.spack import clone
from mvstack.builders.spack.clone import clones, home, present
from mvstack.model.spack import Pin, SpackPins, spack_pins
from mvstack.support.errors import Missing, Refused, SourceError

SRC = Path(__file__).resolve().parents[2] / "src"
TAG = "v9.9"


def git(folder: Path, *words: str) -> str:
    """One git command in ``folder``; what it prints."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *identity, "-C", str(folder), *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def upstream(folder: Path) -> str:
    """A repository with one commit and a tag; the commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "README").write_text("hello\n")
    git(folder, "add", "README")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "tag", "-a", TAG, "-m", TAG)  # annotated: the tag is no commit itself
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SpackPins:
    """Two small repositories in place of Spack and its packages."""
    for name in ("MVSTACK_SPACK_URL", "MVSTACK_SPACK_PACKAGES_URL"):
        monkeypatch.delenv(name, raising=False)
    found = {
        name: pin(str(tmp_path / name), TAG, upstream(tmp_path / name))
        for name in ("spack", "packages")
    }
    return SpackPins(**found)


def pin(url: str, tag: str, commit: str) -> Pin:
    return Pin(url=url, tag=tag, commit=commit, why="a test", source="this file")


def left(root: Path) -> list[str]:
    """What of half clones is left."""
    return [path.name for path in root.rglob(f"{clone.INCOMING}*")]


def test_both_are_cloned_at_their_commits_and_shallow(tmp_path: Path, pins: SpackPins) -> None:
    found = clones(tmp_path / "root", pins)
    assert found.spack == tmp_path / "root" / "spack" / TAG / "spack"
    assert git(found.packages, "rev-parse", "HEAD") == pins.packages.commit
    assert git(found.spack, "describe", "--tags") == TAG
    assert present(tmp_path / "root", pins) and left(tmp_path) == []


def test_the_second_time_nothing_is_fetched(tmp_path: Path, pins: SpackPins) -> None:
    clones(tmp_path / "root", pins)
    (tmp_path / "spack").rename(tmp_path / "gone")
    said: list[str] = []
    clones(tmp_path / "root", pins, said.append)
    assert said == []


def test_a_moved_tag_is_refused_with_both_commits(tmp_path: Path, pins: SpackPins) -> None:
    (tmp_path / "packages" / "README").write_text("other\n")
    git(tmp_path / "packages", "commit", "--quiet", "-am", "second")
    git(tmp_path / "packages", "tag", "-f", "-a", TAG, "-m", TAG)
    now = git(tmp_path / "packages", "rev-parse", "HEAD")
    with pytest.raises(Refused) as caught:
        clones(tmp_path / "root", pins)
    assert now in caught.value.problems[0].found
    assert pins.packages.commit in caught.value.problems[0].allowed
    assert not (home(tmp_path / "root", pins) / "packages").exists() and left(tmp_path) == []


def test_an_unreachable_place_names_the_three_ways_out(tmp_path: Path, pins: SpackPins) -> None:
    (tmp_path / "spack").rename(tmp_path / "gone")
    with pytest.raises(SourceError) as caught:
        clones(tmp_path / "root", pins)
    todo = caught.value.problems[0].todo
    for way in (
        "MVSTACK_SPACK_URL=",
        str(tmp_path / "root" / "spack" / TAG / "spack"),
        "builder: easybuild",
    ):
        assert way in todo
    assert "does not appear to be a git repository" in caught.value.problems[0].found
    assert left(tmp_path) == []


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    tmp_path: Path, pins: SpackPins, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    # the real one, but for a fetch, which hangs as a dead server makes it hang
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    program.write_text(
        f'#!/bin/sh\n[ "$1" != fetch ] || exec sleep 600\nexec {real.strip()} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(clone, "SILENCE", 0.5)
    monkeypatch.setattr("mvstack.support.processes.TICK", 0.1)
    with pytest.raises(SourceError, match="nothing was heard from it"):
        clones(tmp_path / "root", pins)
    assert left(tmp_path) == []


def test_a_mirror_is_taken_instead(
    tmp_path: Path, pins: SpackPins, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spack").rename(tmp_path / "mirror")
    monkeypatch.setenv("MVSTACK_SPACK_URL", str(tmp_path / "mirror"))
    assert clones(tmp_path / "root", pins).spack.is_dir()


def test_a_bundle_is_taken_instead(
    tmp_path: Path, pins: SpackPins, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path / "packages", "bundle", "create", str(tmp_path / "p.bundle"), TAG)
    monkeypatch.setenv("MVSTACK_SPACK_PACKAGES_URL", str(tmp_path / "p.bundle"))
    (tmp_path / "packages").rename(tmp_path / "gone")
    found = clones(tmp_path / "root", pins)
    assert git(found.packages, "rev-parse", "HEAD") == pins.packages.commit


def test_clones_put_there_by_hand_are_taken(tmp_path: Path, pins: SpackPins) -> None:
    folder = home(tmp_path / "root", pins)
    folder.mkdir(parents=True)
    for name in ("spack", "packages"):
        git(tmp_path, "clone", "--quiet", "--branch", TAG, str(tmp_path / name), str(folder / name))
        (tmp_path / name).rename(tmp_path / f"{name}-gone")
    assert clones(tmp_path / "root", pins).spack == folder / "spack"


def test_another_commit_put_there_by_hand_is_refused(tmp_path: Path, pins: SpackPins) -> None:
    clones(tmp_path / "root", pins)
    folder = home(tmp_path / "root", pins) / "packages"
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "mine")
    with pytest.raises(Refused, match="is not the commit that is pinned"):
        clones(tmp_path / "root", pins)
    assert folder.is_dir()  # what a person put there is never removed


def test_a_changed_file_is_refused_by_name(tmp_path: Path, pins: SpackPins) -> None:
    folder = clones(tmp_path / "root", pins).packages
    (folder / "README").write_text("mine\n")
    with pytest.raises(Refused, match="1 files of the clone were changed") as caught:
        clones(tmp_path / "root", pins)
    assert caught.value.problems[0].found == "README"


def test_settings_that_somebody_gave_it_are_refused(tmp_path: Path, pins: SpackPins) -> None:
    """Spack's own commands write them into etc/spack, where git ignores them."""
    folder = clones(tmp_path / "root", pins).spack
    (folder / ".git" / "info" / "exclude").write_text("/etc/spack/*.yaml\n")
    (folder / "etc" / "spack").mkdir(parents=True)
    (folder / "etc" / "spack" / "repos.yaml").write_text("repos: {}\n")
    with pytest.raises(Refused, match="1 files of the clone were changed or added") as caught:
        clones(tmp_path / "root", pins)
    assert caught.value.problems[0].found == "etc/spack/repos.yaml"


def test_a_folder_that_is_no_clone_is_refused(tmp_path: Path, pins: SpackPins) -> None:
    for name in ("spack", "packages"):
        (home(tmp_path / "root", pins) / name).mkdir(parents=True)
    with pytest.raises(Refused, match="not a git clone") as caught:
        clones(tmp_path / "root", pins)
    assert f"git clone --branch {TAG}" in caught.value.problems[0].todo


def test_a_root_that_cannot_be_written_to_is_named(tmp_path: Path, pins: SpackPins) -> None:
    (tmp_path / "root").write_text("a file\n")
    with pytest.raises(Missing, match="Spack cannot be put there"):
        clones(tmp_path / "root", pins)


KILLED = """
import sys
from pathlib import Path
from mvstack.builders.spack import clone
from mvstack.model.spack import Pin, SpackPins
def stay(*words):
    print("here", flush=True)
    import time; time.sleep(600)
clone._prove = stay
clone.Path.rename = stay
clone.clones(Path(sys.argv[1]), SpackPins.model_validate_json(sys.argv[2]))
"""


def test_killed_in_the_middle_the_next_call_clones_anew(tmp_path: Path, pins: SpackPins) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "root"), pins.model_dump_json()],
        env={**os.environ, "PYTHONPATH": str(SRC)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if left(tmp_path):
            break
        time.sleep(0.01)
    assert left(tmp_path) and not (home(tmp_path / "root", pins) / "spack").exists()
    assert clones(tmp_path / "root", pins).spack.is_dir() and left(tmp_path) == []


def test_the_pins_are_those_of_the_policy() -> None:
    found = spack_pins()
    assert found.spack.tag == "v1.1.0" and len(found.spack.commit) == 40
    assert found.packages.tag == "v2025.11.0" and len(found.packages.commit) == 40
