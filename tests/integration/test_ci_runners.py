"""The shell lines of jobs, run as runners run them: clones, what they keep, what they take away."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from mvstack.cache import gpg
from mvstack.ci import steps
from mvstack.ci.changes import todo
from mvstack.ci.graph import read_graphs
from mvstack.ci.handover import Given
from mvstack.ci.pipeline import GET, Context, Target, pipelines
from mvstack.diff.sides import Side
from mvstack.model.ci import Images, Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.support.home import DATA
from mvstack.support.progress import Progress

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


def image_jobs(name: str, **more: Any) -> dict[str, Any]:
    """The jobs of a trusted pipeline of a partition with an image, nothing of it in a cache."""
    graph = read_graphs(Side("now", DATA, DATA / "environments" / "rendered"))[name]
    images = Images(
        folder="/srv/i", to="/srv/o", vulnerabilities="unknown", settings="p.json", **more
    )
    site = Site(system=name.partition("/")[0], staging="/s", images=images)
    target = Target(todo(None, graph, (), ci_policy().validation), site, name)
    settings = Settings(systems=[site], push="/cache", trust=["site.asc"])
    text = pipelines([target], Context(settings, trusted=True)).files["pipeline.yml"]
    return dict(yaml.safe_load(text))


@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
def test_jobs_of_images_have_the_sites_key_for_as_long_as_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = image_jobs("qemu-debian12/mpich")
    home = tmp_path / "gnupg"
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(home))
    key = gpg.create("A site of tests", "hpc@example.org")
    (tmp_path / "site.asc").write_text(gpg.export(key.fingerprint))
    words = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--armor"]
    words += ["--export-secret-keys", key.fingerprint]
    secret = subprocess.run(words, check=True, capture_output=True).stdout
    (tmp_path / "signing.key").write_bytes(secret)
    own = (
        f"{sys.executable} -c 'from mvstack.cache import gpg; "
        "print([(one.fingerprint, one.own) for one in gpg.trusted()])'; echo $MVSTACK_GNUPGHOME"
    )
    variables = {"MVSTACK_SIGNING_KEY": str(tmp_path / "signing.key")}
    for name, signs in (("image:build", False), ("image:test", True), ("image:publish", False)):
        said = shell(f"{jobs[name]['script'][0]}\n{own}", tmp_path, **(variables if signs else {}))
        keys, folder = said.splitlines()
        assert keys == str([(key.fingerprint, signs)]), name
        assert not Path(folder).exists(), "the key is gone with the job"
    with pytest.raises(AssertionError, match="variable of the environment mvstack-signing"):
        shell(jobs["image:test"]["script"][0], tmp_path)


def test_a_cloud_is_entered_with_gitlabs_token(tmp_path: Path) -> None:
    """By moto, another project's emulator of AWS: it takes any token; boto3 must find ours."""
    jobs = image_jobs("aws-hpc7a/hpc", audience="https://gitlab.example.org")
    (login,) = [one for one in jobs["image:build"]["script"] if "AWS_ROLE_ARN" in one]
    login = "\n".join(line for line in login.splitlines() if not line.startswith("gpg "))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    who = "import boto3; print(boto3.client('sts').get_caller_identity()['Arn'])"
    asked = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/images",
        "AWS_DEFAULT_REGION": "eu-north-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "MVSTACK_ID_TOKEN": "a.b.c",
    }
    try:
        for _ in range(120):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.5)
        said = shell(f'{login}\n{sys.executable} -c "{who}"', tmp_path, **asked)
    finally:
        server.terminate()
        server.wait()
    assert "assumed-role/images" in said


@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
@pytest.mark.parametrize(("umask", "shared"), [("002", True), ("022", False)])
def test_who_signs_next_may_be_another_user_of_the_sites_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: str, shared: bool
) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "gnupg"))
    monkeypatch.chdir(tmp_path)
    gpg.create("A site of tests", "hpc@example.org")
    text = (DATA / "environments" / "systems" / "qemu-debian12.yaml").read_text()
    own = f'install: {{umask: "{umask}"}}\npartitions:\n'
    (tmp_path / "mine.yaml").write_text(
        text.replace("name: qemu-debian12", "name: mine").replace("partitions:\n", own, 1)
    )
    before = os.umask(0o077)
    try:
        job = steps.Job("mine.yaml/mpich", Progress(mode="quiet"), Given())
        steps.sign_job(job, str(tmp_path / "cache"), "")
    finally:
        os.umask(before)
    assert bool((tmp_path / "cache").stat().st_mode & 0o020) == shared
