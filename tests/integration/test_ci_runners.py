"""The shell lines of jobs, run as runners run them: clones, what they keep, what they take away."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from mvstack.ci.changes import todo
from mvstack.ci.graph import read_graphs
from mvstack.ci.pipeline import GET, Context, Target, pipelines
from mvstack.diff.sides import Side
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.support.home import DATA

MONTH = 31 * 86400


def shell(text: str, folder: Path, **variables: str) -> str:
    """What a job with this script prints, run as GitLab's runner runs it."""
    keep = {name: os.environ[name] for name in ("PATH",)}
    done = subprocess.run(
        ["bash", "-c", f"set -eo pipefail\n{text}"],
        cwd=folder,
        env={**keep, "HOME": str(folder / "home"), "CI_PROJECT_DIR": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def stack(tmp_path: Path) -> dict[str, str]:
    """A repository in place of mvapich-stack, and the variables that name it."""
    folder = tmp_path / "stack"
    folder.mkdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    (folder / "mvstack").write_text("#!/bin/sh\necho the stack\n")
    (folder / "mvstack").chmod(0o755)
    for words in (["init", "-q"], ["add", "mvstack"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    words = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout
    return {"MVSTACK_URL": folder.as_uri(), "MVSTACK_COMMIT": commit.strip()}


def old(path: Path, seconds: float = MONTH) -> Path:
    path.mkdir(parents=True)
    (path / "file").write_text("of before")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_a_clone_that_no_job_used_for_a_month_goes(tmp_path: Path, stack: dict[str, str]) -> None:
    top = tmp_path / "home" / ".cache" / "mvapich-stack" / "open"
    gone, young = old(top / ("a" * 40)), old(top / ("b" * 40), 86400)
    shared = old(top / "spack")
    for _ in range(2):
        assert shell(f"{GET.read_text()}\nmvstack", tmp_path, **stack) == "the stack"
        own = top / stack["MVSTACK_COMMIT"]
        assert own.is_dir() and young.is_dir() and shared.is_dir()
        assert not gone.exists()
        # used again, it stays, however old it is
        os.utime(own, (time.time() - MONTH,) * 2)


def test_a_container_keeps_its_clone_where_gitlabs_cache_takes_it_from(
    tmp_path: Path, stack: dict[str, str]
) -> None:
    text = f"{GET.read_text()}\nmvstack; echo $MVSTACK_CLONES $MVSTACK_SOURCES"
    cached = tmp_path / ".mvstack-cache"
    said = shell(text, tmp_path, CI_DISPOSABLE_ENVIRONMENT="true", **stack)
    assert said == f"the stack\n{cached}/clones {cached}/sources"
    installed = cached / "clones" / "open" / stack["MVSTACK_COMMIT"] / ".venv"
    installed.mkdir()
    again = {**stack, "MVSTACK_URL": "file:///nowhere"}  # brought by the cache: nothing is cloned
    assert shell(text, tmp_path, CI_DISPOSABLE_ENVIRONMENT="true", **again) == said
    assert installed.is_dir() and not (tmp_path / "home" / ".cache").exists()
    site = yaml.safe_load_all((DATA / "ci" / "site.yml").read_text())
    (path,) = list(site)[1][".mvstack"]["cache"]["paths"]
    assert installed.is_relative_to(tmp_path / path)
    # a volume that the site's runners mount goes before
    mounted = {"MVSTACK_CLONES": str(tmp_path / "volume"), "CI_DISPOSABLE_ENVIRONMENT": "true"}
    assert str(tmp_path / "volume") in shell(text, tmp_path, **mounted, **stack)


def test_what_cancelled_pipelines_left_goes_with_the_next(tmp_path: Path) -> None:
    staging = tmp_path / "staging"
    left, fresh, other = old(staging / "123"), old(staging / "124", 60), old(staging / "notes")
    name = "qemu-debian12/mpich"
    graphs = read_graphs(Side("now", DATA, DATA / "environments" / "rendered"))
    site = Site(system="qemu-debian12", staging=str(staging))
    target = Target(todo(None, graphs[name], (), ci_policy().validation), site, name)
    context = Context(Settings(systems=[site]), trusted=False)
    jobs = yaml.safe_load(pipelines([target], context).files["pipeline.yml"])
    shell(jobs["stage"]["script"][0], tmp_path)
    assert not left.exists()
    assert fresh.is_dir() and other.is_dir()
    shell(jobs["stage"]["script"][0].replace(str(staging), str(tmp_path / "none")), tmp_path)
