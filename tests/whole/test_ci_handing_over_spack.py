"""Jobs that build a stack with Spack and hand it on: with the real Spack.

The packages are those of test_spack_builder, which build in a second.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from test_spack_builder import RECIPES, Here

from mvstack.builders.base import Run
from mvstack.builders.spack import handed
from mvstack.builders.spack.builder import BUILDER
from mvstack.builders.spack.resolve import read
from mvstack.cache import gpg
from mvstack.cache.use import site_caches
from mvstack.ci import steps
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import Given, caches_below, keyring
from mvstack.ci.lock import taken
from mvstack.ci.sign import sign
from mvstack.ci.steps import build, stage
from mvstack.install import stages
from mvstack.model.load import load_system
from mvstack.plan.types import Plan
from mvstack.support.errors import Missing, Refused
from mvstack.support.progress import Progress

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed"),
]
QUIET = Progress(mode="quiet")


class Jobs:
    """Install roots beside each other, each with the Spack that tests share, and one lock."""

    def __init__(self, here: Here, patch: pytest.MonkeyPatch) -> None:
        self.here, self.folder, self.compilers = here, here.folder, ""
        patch.setattr("mvstack.plan.spack.RECIPES", RECIPES)
        patch.setenv("HOME", str(here.folder / "home"))
        patch.setenv("XDG_STATE_HOME", str(here.folder / "state"))
        patch.setenv("MVSTACK_GNUPGHOME", str(here.folder / "site-keys"))
        patch.setenv("MVSTACK_TEST_HOOK", "")
        patch.delenv("MVSTACK_CACHES", raising=False)
        self.handover, self.cache = here.folder / "handover", here.folder / "cache"
        self.key = gpg.create("Site of the tests", "a@example.org")
        self.public = here.folder / "site.asc"
        self.public.write_text(gpg.export(self.key.fingerprint))
        # the Spack that tests share is the one that jobs share here
        clones = here.folder / "clones" / "open"
        clones.mkdir(parents=True)
        (clones / "spack").symlink_to((here.root / "spack").resolve())
        patch.setenv("MVSTACK_CLONES", str(clones.parent))
        patch.delenv("CI_COMMIT_REF_PROTECTED", raising=False)
        self.name = f"{here.system}/node"
        handed.hand_on(
            stages.plan_for(load_system(str(here.system)), "node", None, here.root),
            here.folder / "lock",
        )
        self.lock = here.folder / "lock" / "spack.lock"

    def asked(self, *take: Path, caches: Sequence[str] = (), trust: bool = False) -> steps.Job:
        """What a job of the pipeline is told."""
        given = Given(take, caches, [self.public] if trust else [])
        return steps.Job(self.name, QUIET, given, compilers=self.compilers)

    def plan(self, job: str) -> Plan:
        root = self.folder / job
        root.mkdir(exist_ok=True)
        if not (root / "spack").exists():
            (root / "spack").symlink_to((self.here.root / "spack").resolve())
        return stages.plan_for(load_system(str(self.here.system)), "node", None, root)

    def job(self, name: str, nodes: frozenset[str], *take: Path) -> list[dict[str, Any]]:
        given = Given(take, [], [self.public], self.lock)
        return build(self.plan(name), nodes, self.handover / name, given, QUIET, 1)


def test_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One solve; in this order, for each step goes on from the one before."""
    here = Here(tmp_path_factory.mktemp("spack-ci"))
    status, said = here.install()
    assert status == 0, said
    jobs = Jobs(here, monkeypatch)
    umask = os.umask(0o022)
    os.umask(umask)
    built = {node.hash: node.name for node in read(jobs.lock).built()}
    hpcc = frozenset(key for key, name in built.items() if name == "hpcc")
    below = frozenset(built) - hpcc

    rows = jobs.job("job-a", below)
    assert {row["hash"] for row in rows} == below and not any("from" in row for row in rows)
    assert all(row["handed"] for row in rows)
    rows = jobs.job("job-b", hpcc, jobs.handover)
    assert [row["package"] for row in rows if "from" not in row] == ["hpcc"]
    assert "mvapich" in {row["package"] for row in rows if "from" in row}
    assert names(jobs.handover / "job-b") == ["hpcc"]
    assert sorted(names(jobs.handover / "job-a")) == sorted(built[key] for key in below)
    assert not list(Path(jobs.plan("job-b").tree).glob("modules/**/*.lua"))
    assert jobs.job("job-b", hpcc, jobs.handover) == []

    with pytest.raises(Refused, match="nobody handed it over") as caught:
        jobs.job("job-c", hpcc)
    assert "mvapich" in str(caught.value)

    plan = jobs.plan("job-s")
    rows = stage(plan, Given([jobs.handover], lock=jobs.lock), QUIET)
    assert {row.get("from") for row in rows} == {"binary cache"}
    script = f"source {plan.tree}/init/bash && module load mvapich-stack hpcc && hpcc && mpiexec"
    command = ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["whole", "mpiexec of the stand-in"], done.stderr

    with pytest.raises(Refused, match="not part of the plan"):
        sign(plan, [jobs.handover], str(jobs.cache), jobs.key, QUIET)
    signed = sign(plan, [jobs.handover], str(jobs.cache), jobs.key, QUIET, jobs.lock)
    assert {row["hash"]: row["result"] for row in signed} == dict.fromkeys(built, "signed")
    again = sign(plan, [jobs.handover], str(jobs.cache), jobs.key, QUIET, jobs.lock)
    assert {row["result"] for row in again} == {"already there"}

    plan = jobs.plan("job-d")
    with keyring([], [jobs.public]):
        run = Run(
            stages.fetcher_for(plan.root),
            QUIET,
            jobs=1,
            caches=site_caches([str(jobs.cache)], only=True),
            lock=jobs.lock,
        )
        rows = BUILDER.install(plan, run)
    assert {row["package"].lower() for row in rows} >= {"mvapich", "hpcc"}
    assert {row.get("from") for row in rows} == {"binary cache"}

    a_changed_byte_and_a_lost_key_are_refused(jobs, hpcc)


@pytest.mark.parametrize("origin", ["system", "spack"])
def test_a_whole_partition_goes_from_its_one_job_to_the_shared_tree(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    """By the calls of `mvstack ci`: one job solves, and all after it install by its lock.

    A compiler that Spack builds is not built here: the system's stands in its place.
    """
    here = Here(tmp_path_factory.mktemp("spack-ci"))
    here.system.write_text(here.system.read_text().replace("origin: system", f"origin: {origin}"))
    jobs = Jobs(here, monkeypatch)
    if origin == "spack":
        jobs.compilers = str(here.folder / "compilers")
        with pytest.raises(Missing, match="the compiler that Spack builds"):
            built_whole(jobs, "build-all", here.folder / "logs")
        prefix = Path(jobs.asked().planned("build")[1].compiler["prefix"])
        prefix.parent.mkdir(parents=True)
        prefix.symlink_to("/usr")
    umask = os.umask(0o022)
    os.umask(umask)
    logs, apps = here.folder / "logs", here.folder / "apps"
    rows = built_whole(jobs, "build-all", logs)
    lock = jobs.handover / "build-all" / "lock" / "spack.lock"
    built = {node.hash: node.name for node in read(lock).built()}
    assert {row["hash"] for row in rows} == set(built) and all(row["handed"] for row in rows)
    assert sorted(names(jobs.handover / "build-all")) == sorted(built.values())
    assert list(logs.glob("*.log"))
    assert taken([jobs.handover]) == lock and len(caches_below([jobs.handover])) == 1

    staging = here.folder / "staging"
    rows = steps.stage_job(jobs.asked(jobs.handover), staging)
    assert {row.get("from") for row in rows} == {"binary cache"}
    assert (staging / "2026.11" / "here-node" / "modules" / "Core").is_dir()
    with pytest.raises(Refused, match="there is no lock"):
        steps.deploy_job(jobs.asked(caches=[str(jobs.cache)], trust=True), apps)

    own, rows = steps.sign_job(jobs.asked(jobs.handover), str(jobs.cache), "")
    assert own == jobs.key and {row["result"] for row in rows} == {"signed"}
    rows = steps.deploy_job(jobs.asked(caches=[str(jobs.cache)], trust=True), apps)
    # what only builds need stays out, as Spack does it
    needed = {key for key, name in built.items() if name in ("mvapich", "hpcc")}
    assert needed <= {row["hash"] for row in rows} <= set(built)
    tree = apps / "2026.11" / "here-node"
    assert (tree / "rendered" / "spack" / "spack.lock").read_bytes() == lock.read_bytes()
    script = f"source {tree}/init/bash && module load mvapich-stack hpcc && hpcc && mpiexec"
    command = ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.splitlines()[:2] == ["whole", "mpiexec of the stand-in"], done.stderr

    # another pipeline: the signed lock is taken, nothing is solved for, built or handed on
    again = jobs.handover / "again"
    rows = built_whole(jobs, "again", logs, str(jobs.cache))
    assert {row.get("from") for row in rows} == {"binary cache"}
    assert [path.name for path in again.iterdir()] == ["lock"]
    assert (again / "lock" / "spack.lock").read_bytes() == lock.read_bytes()

    # a lock that somebody has changed, and one that nobody whom this site trusts has signed
    (file,) = jobs.cache.glob("locks/here-node/*/lock.json")
    text = file.read_text()
    file.write_text(text.replace("hpcc", "hpcd", 1))
    with pytest.raises(Refused, match="changed after it was signed"):
        steps.deploy_job(jobs.asked(caches=[str(jobs.cache)], trust=True), apps)
    file.write_text(text)
    with pytest.raises(Refused, match="not trusted"):
        steps.deploy_job(jobs.asked(caches=[str(jobs.cache)]), apps)

    several_jobs_take_it_from_the_job_lock(jobs, lock.parent, built)


def several_jobs_take_it_from_the_job_lock(jobs: Jobs, lock: Path, built: dict[str, str]) -> None:
    """As where lock files were known when the pipeline was planned."""
    handover = jobs.folder / "several"
    hpcc = [key for key, name in built.items() if name == "hpcc"]
    below = [key for key in built if key not in hpcc]

    def job(name: str, nodes: list[str]) -> list[dict[str, Any]]:
        return steps.build_job(jobs.asked(handover), steps.Building(nodes, handover / name, 1))

    with pytest.raises(Refused, match="there is no lock"):
        job("build-a", below)
    shutil.copytree(lock, handover / "lock" / "lock")
    assert {row["hash"] for row in job("build-a", below)} == set(below)
    rows = job("build-b", hpcc)
    assert [row["hash"] for row in rows if row.get("handed")] == hpcc
    staging = jobs.folder / "staging-b"
    rows = steps.stage_job(jobs.asked(handover), staging)
    assert {row.get("from") for row in rows} == {"binary cache"}
    cache = jobs.folder / "cache-b"
    _, rows = steps.sign_job(jobs.asked(handover), str(cache), "")
    assert {row["hash"] for row in rows} == set(built)
    assert list(cache.glob("locks/here-node/*/lock.json.asc"))


def built_whole(jobs: Jobs, job: str, logs: Path, *caches: str) -> list[dict[str, Any]]:
    """The one job of a partition whose lock is not known, in a root that is gone afterwards."""
    what = steps.Building([WHOLE], jobs.handover / job, 1, logs)
    return steps.build_job(jobs.asked(caches=caches, trust=True), what)


def a_changed_byte_and_a_lost_key_are_refused(jobs: Jobs, hpcc: frozenset[str]) -> None:
    mvapich = next((jobs.handover / "job-a").glob("spack/v3/manifests/spec/mvapich/*"))
    digests = [json_of(mvapich)["data"][0]["checksum"]]
    blob = next((jobs.handover / "job-a" / "spack" / "blobs").rglob(digests[0]))
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused(jobs, hpcc, "other bytes")
    blob.write_bytes(whole)
    shutil.rmtree(jobs.handover / "job-a" / "keys")
    refused(jobs, hpcc, "not trusted")


def refused(jobs: Jobs, hpcc: frozenset[str], why: str) -> None:
    with pytest.raises(Refused, match=why):
        jobs.job("job-e", hpcc, jobs.handover)
    with pytest.raises(Refused, match=why):
        stage(jobs.plan("job-f"), Given([jobs.handover], lock=jobs.lock), QUIET)
    with pytest.raises(Refused, match=why):
        other = str(jobs.folder / "other")
        sign(jobs.plan("job-f"), [jobs.handover], other, jobs.key, QUIET, jobs.lock)
    assert not list((jobs.folder / "other").rglob("*.json"))


def json_of(manifest: Path) -> Any:
    text = manifest.read_text()
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def names(cache: Path) -> list[str]:
    return [folder.name for folder in (cache / "spack" / "v3" / "manifests" / "spec").iterdir()]
