"""Pipelines of partitions by Spack, with lock files and without: how a lock gets to its jobs."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from gitlab import schema
from lock_files import DATA

from mvstack.builders.spack import handed
from mvstack.builders.spack.cache import believed, manifest_of
from mvstack.builders.spack.resolve import read
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.cache.store import publish
from mvstack.ci import lock as locks_of
from mvstack.ci import sites, steps
from mvstack.ci.generate import Made, Wanted, generate
from mvstack.ci.handover import Given, caches_below, job_key, keyring
from mvstack.ci.pipeline import Context
from mvstack.ci.sign import sign
from mvstack.ci.words import explained
from mvstack.cli.rendering import render_systems
from mvstack.diff.sides import Side
from mvstack.install import stages
from mvstack.model.ci import load_settings
from mvstack.model.load import load_system
from mvstack.model.system import System
from mvstack.plan.types import Plan
from mvstack.render.spack import compiler_of
from mvstack.support.errors import InvalidInput, Missing, Refused
from mvstack.support.progress import Progress

SYSTEM = """\
name: mine
builder: spack
os: debian12
partitions:
"""
PARTITION = """\
  {name}:
    cores: 1
    memory_gb: 1
    target: zen2
    fabric: shm
    launcher: hydra
    compiler: {{name: gcc, version: 12.2.0, origin: {origin}}}
    externals:
      libfabric: {{version: 1.17.0, prefix: /usr, providers: [shm, tcp]}}
    mpi: {{product: mvapich, version: "4.0", device: "ch4:ofi", why: for this test}}
"""
SETTINGS = """\
systems:
  - {{system: mine.yaml, staging: /shared/staging, root: /apps{more}}}
caches: [{cache}]
push: {cache}
"""
COMPILERS = "/shared/compilers"
QUIET = Progress(mode="quiet")
GPG = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")


class Project:
    """A site's project with one system, and its settings."""

    def __init__(self, folder: Path, *parts: str, origin: str = "system", more: str = "") -> None:
        self.folder, self.cache = folder / "site", folder / "cache"
        self.folder.mkdir()
        self.cache.mkdir()
        self.system = self.folder / "mine.yaml"
        rows = [PARTITION.format(name=name, origin=origin) for name in parts]
        self.system.write_text(SYSTEM + "".join(rows))
        (self.folder / "mvstack-ci.yaml").write_text(SETTINGS.format(cache=self.cache, more=more))

    def plan(self, part: str) -> Plan:
        plan = stages.plan_for(load_system(str(self.system)), part, None, None)
        return locks_of.over_compilers(plan, COMPILERS)

    def lock(self, part: str, name: str = "good") -> Path:
        """A lock file of the tests' data, noted as one of this plan; the folder of all."""
        folder = self.folder / "locks" / "mine" / part
        folder.mkdir(parents=True)
        shutil.copyfile(DATA / f"{name}.lock", folder / "spack.lock")
        handed.note(self.plan(part), folder)
        return self.folder / "locks"

    def pipelines(self, locks: Path | None = None, **more: Any) -> Made:
        file = Path("mvstack-ci.yaml")
        settings = load_settings(self.folder / file)
        settings = settings.model_copy(update={"locks": str(locks)}) if locks else settings
        context = Context(settings, trusted=True)
        return generate(self.folder, file, context, Wanted(**more))


@pytest.fixture(autouse=True)
def rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the process that renders a side with its own code: here it is the same code."""

    def render(side: Side, systems: list[str], profile: str = "") -> None:
        render_systems(systems, side.rendered, False, profile)

    monkeypatch.setattr(sites, "render", render)


def test_with_a_lock_file_each_job_installs_by_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu")
    made = project.pipelines(locks=project.lock("cpu"))
    assert made.notes == []
    (text,) = made.pipelines.files.values()
    assert schema.errors(text) == []
    jobs = yaml.safe_load(text)
    assert jobs["lock"]["needs"] == [{"pipeline": "$PLAN_PIPELINE_ID", "job": "plan"}]
    builds = {name: job for name, job in jobs.items() if name.startswith("build:")}
    assert builds and all(job["needs"][0] == "lock" for job in builds.values())
    words = " ".join(job["script"][0] for job in builds.values()).split()
    asked = [node for word, node in pairwise(words) if word == "--node"]
    specs = json.loads((DATA / "good.lock").read_text())["concrete_specs"]
    assert set(asked) == {key for key, spec in specs.items() if "external" not in spec}
    assert jobs["deploy"]["needs"] == ["validate", "sign"]
    assert set(made.pipelines.locks) == {
        "locks/mine-cpu/spack.lock",
        "locks/mine-cpu/lock.json",
    }
    said = explained(made.against, made.todos, made.pipelines.jobs)
    assert "mine/cpu (spack, by lock file): new" in said


def test_the_settings_may_name_the_lock_files(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu")
    project.lock("cpu")
    with (project.folder / "mvstack-ci.yaml").open("a") as stream:
        stream.write("locks: locks\n")
    assert project.pipelines().pipelines.locks
    with pytest.raises(InvalidInput, match="no such folder of lock files"):
        project.pipelines(locks=project.folder / "nowhere")


def test_a_lock_file_of_another_plan_is_none(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu")
    locks = project.lock("cpu")
    text = project.system.read_text()
    project.system.write_text(text.replace("target: zen2", "target: zen3"))
    made = project.pipelines(locks=locks)
    assert "the lock file of mine/cpu is not used" in made.notes[0]
    (text,) = made.pipelines.files.values()
    assert schema.errors(text) == []
    jobs = yaml.safe_load(text)
    assert "lock" not in jobs and "PLAN_PIPELINE_ID" not in text and not made.pipelines.locks
    (build,) = [job for name, job in jobs.items() if name.startswith("build:")]
    assert "--node whole " in build["script"][0] and build["needs"] == []


def test_the_job_that_plans_may_solve_so_that_each_package_has_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_CLONES", str(tmp_path / "clones"))
    project = Project(tmp_path, "cpu", "big")
    asked = []

    def solved(plan: Plan, root: Path, place: Path, _: Progress) -> Iterator[tuple[Any, Any]]:
        assert root == tmp_path / "clones" / "open" and place.is_dir()
        asked.append(plan.partition)
        yield SimpleNamespace(file=DATA / "good.lock"), None

    monkeypatch.setattr(locks_of, "solved", solved)
    with (project.folder / "mvstack-ci.yaml").open("a") as stream:
        stream.write("solve: true\n")
    first = project.pipelines(locks=project.lock("cpu"))
    assert asked == ["big"], "the project has a lock file of the other"
    jobs = yaml.safe_load(first.pipelines.files["mine-big.yml"])
    assert jobs["lock"] and len([one for one in jobs if one.startswith("build:")]) > 1
    assert project.pipelines(locks=project.folder / "locks").pipelines == first.pipelines
    assert asked == ["big"], "what was solved for once is kept"


def test_a_conductor_tells_each_partition_where_the_plan_is(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu", "big")
    made = project.pipelines(locks=project.lock("cpu"))
    files = made.pipelines.files
    assert set(files) == {"pipeline.yml", "mine-cpu.yml", "mine-big.yml"}
    assert not [error for text in files.values() for error in schema.errors(text)]
    jobs = yaml.safe_load(files["pipeline.yml"])
    assert jobs["mine-cpu"]["variables"] == {"PLAN_PIPELINE_ID": "$PARENT_PIPELINE_ID"}
    assert "variables" not in jobs["mine-big"]
    assert "lock" in yaml.safe_load(files["mine-cpu.yml"])


@pytest.mark.parametrize("arrived", [True, False])
def test_the_job_lock_brings_it_where_every_job_looks(tmp_path: Path, arrived: bool) -> None:
    project = Project(tmp_path, "cpu")
    made = project.pipelines(locks=project.lock("cpu"))
    here = tmp_path / "job"
    there = here / "ci-pipelines" if arrived else tmp_path / "elsewhere"
    sites.write({**made.pipelines.files, **made.pipelines.locks}, there)
    here.mkdir(exist_ok=True)
    script = yaml.safe_load(made.pipelines.files["pipeline.yml"])["lock"]["script"]
    environment = {"PATH": "/usr/bin:/bin"} | ({} if arrived else {"MVSTACK_PIPELINES": str(there)})
    for _ in range(2):  # a runner may keep what an earlier job left
        subprocess.run(["bash", "-ec", "\n".join(script)], cwd=here, env=environment, check=True)
    (here / "handover" / "build-a" / "spack" / "v3").mkdir(parents=True)
    found = locks_of.taken([here / "handover"])
    assert found == here / "handover" / "lock" / "lock" / "spack.lock"
    handed.check(found, project.plan("cpu"))
    assert [cache.name for cache in caches_below([here / "handover"])] == ["build-a"]
    if not arrived:
        done = subprocess.run(
            ["bash", "-ec", "\n".join(script)],
            cwd=here,
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode and "the lock of the job plan did not arrive" in done.stderr


@pytest.mark.parametrize("origin", ["spack", "easybuild"])
def test_a_compiler_that_spack_builds_needs_a_folder_that_all_see(
    tmp_path: Path, origin: str
) -> None:
    project = Project(tmp_path, "cpu", "big", origin=origin)
    with pytest.raises(InvalidInput, match="no folder for compilers is named") as caught:
        project.pipelines()
    assert [one.where for one in caught.value.problems] == ["mine/cpu", "mine/big"]
    (problem, _) = caught.value.problems
    assert origin in problem.found
    assert "hash of every package" in problem.because and "compilers:" in problem.todo
    assert project.pipelines(schedule="nightly").pipelines.files  # nothing is built there


@pytest.mark.parametrize("locked", [True, False])
def test_a_compiler_that_spack_builds_is_a_job_before_all_others(
    tmp_path: Path, locked: bool
) -> None:
    more = f", compilers: {COMPILERS}"
    project = Project(tmp_path, "cpu", origin="spack", more=more)
    made = project.pipelines(locks=project.lock("cpu") if locked else None)
    assert made.notes == [] and bool(made.pipelines.locks) == locked
    (text,) = made.pipelines.files.values()
    assert schema.errors(text) == []
    jobs = yaml.safe_load(text)
    compiler = jobs["compiler"]
    assert "--node compiler" in compiler["script"][0]
    assert "protected" in compiler["tags"], "merge requests must not write what users run"
    for name, job in jobs.items():
        if name.startswith("build:"):
            assert job["needs"][: locked + 1] == ["lock", "compiler"][not locked :]
        if name.startswith(("build:", "compiler")) or name in ("stage", "sign", "deploy"):
            assert f"--compilers {COMPILERS}" in job["script"][-1], name
    file = Path("mvstack-ci.yaml")
    context = Context(load_settings(project.folder / file), trusted=False)
    jobs = yaml.safe_load(
        generate(project.folder, file, context, Wanted()).pipelines.files["pipeline.yml"]
    )
    assert "compiler" not in jobs and "compiler" not in str(jobs["stage"].get("needs"))
    for name, job in jobs.items():
        assert not name.startswith("build:") or job["needs"] == []


def test_a_compilers_place_is_one_for_all_trees_and_another_for_another(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu", "big", origin="spack")
    system = load_system(str(project.system))

    def prefix(part: str, root: Path | None = None, system: System = system) -> str:
        plan = stages.plan_for(system, part, None, root)
        found = locks_of.over_compilers(plan, COMPILERS)
        own = locks_of.of_compiler(plan, COMPILERS)
        assert found.compiler["prefix"] == compiler_of(own)["prefix"]
        assert handed.inputs(found) == handed.inputs(replace(found, root="/a", tree="/a/b"))
        return str(found.compiler["prefix"])

    first = prefix("cpu")
    assert first.startswith(f"{COMPILERS}/gcc-12.2.0-") and first.endswith("/compiler/gcc-12.2.0")
    assert first == prefix("cpu", tmp_path / "elsewhere") == prefix("big")
    text = project.system.read_text()
    project.system.write_text(text.replace("12.2.0", "13.3.0"))
    assert prefix("cpu", system=load_system(str(project.system))) != first
    project.system.write_text(text.replace("target: zen2", "target: neoverse_v2"))
    assert prefix("cpu", system=load_system(str(project.system))) != first


def test_jobs_without_the_compiler_say_who_builds_it(tmp_path: Path) -> None:
    project = Project(tmp_path, "cpu", origin="spack")
    folder = str(tmp_path / "compilers")
    given = Given([tmp_path / "handover"])
    job = steps.Job(f"{project.system}/cpu", QUIET, given, compilers=folder)
    _, plan = job.planned("stage")
    with pytest.raises(Missing, match="is not there") as caught, job.with_lock(plan):
        pass
    assert "job `compiler`" in caught.value.problems[0].because
    Path(plan.compiler["prefix"]).mkdir(parents=True)
    with pytest.raises(Refused, match="there is no lock"), job.with_lock(plan):
        pass


# --- the lock in handovers and in a cache ---------------------------------------------------------


def test_locks_that_differ_are_refused(tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b", "1")):
        folder = tmp_path / name / "lock"
        folder.mkdir(parents=True)
        (folder / "spack.lock").write_text(text)
    assert locks_of.taken([tmp_path]) == tmp_path / "a" / "lock" / "spack.lock"
    assert locks_of.taken([tmp_path / "none"]) is None
    (tmp_path / "b" / "lock" / "spack.lock").write_text("2")
    with pytest.raises(Refused, match="they differ"):
        locks_of.taken([tmp_path])


@pytest.mark.parametrize("link", ["lock", "lock/spack.lock", "lock/compiler"])
def test_a_link_in_place_of_a_lock_is_refused(tmp_path: Path, link: str) -> None:
    """The job that signs has a key in a file: a build job must not have it published."""
    target = tmp_path / "secret"
    target.mkdir()
    (target / "spack.lock").write_text("{}")
    folder = tmp_path / "handover" / "a" / "lock"
    folder.parent.mkdir(parents=True)
    if link == "lock":
        folder.symlink_to(target)
    else:
        folder.mkdir()
        (folder / "spack.lock").write_text("{}")
        (folder.parent / link).unlink(missing_ok=True)
        (folder.parent / link).symlink_to(target / link.partition("lock/")[2])
        if link == "lock/compiler":
            (target / "compiler").mkdir()
    with pytest.raises(Refused, match="as a link"):
        locks_of.taken([tmp_path / "handover"])


@GPG
def test_a_signed_lock_stands_for_all_of_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "keys"))
    project = Project(tmp_path, "cpu")
    key, plan = gpg.create("A site of tests", "a@example.org"), project.plan("cpu")
    (project.folder / "site.asc").write_text(gpg.export(key.fingerprint))
    with (project.folder / "mvstack-ci.yaml").open("a") as stream:
        stream.write("trust: [site.asc]\n")
    assert builds(project.pipelines()) == ["build:Spack-s-environment"]
    lock = project.lock("cpu") / "mine" / "cpu" / "spack.lock"
    locks_of.put(plan, lock, str(project.cache), key, QUIET)

    made = project.pipelines()
    assert builds(made) == [] and made.notes == []
    jobs = yaml.safe_load(made.pipelines.files["pipeline.yml"])
    assert "sign" not in jobs and jobs["deploy"]["needs"] == ["validate"]
    found = locks_of.signed(plan, [str(tmp_path / "none"), str(project.cache)], tmp_path / "l")
    assert found and found.read_bytes() == lock.read_bytes()
    handed.check(found, plan)

    # in place of an earlier one, and never without its signature
    shutil.copyfile(DATA / "bad-pmi.lock", lock)
    locks_of.put(plan, lock, str(project.cache), key, QUIET)
    found = locks_of.signed(plan, [str(project.cache)], tmp_path / "l")
    assert found and found.read_bytes() == lock.read_bytes()
    (file,) = project.cache.glob("locks/mine-cpu/*/lock.json.asc")
    file.write_text(file.read_text().replace("mvapich", "mvapicj", 1))
    made = project.pipelines()
    assert builds(made) and "changed after it was signed" in made.notes[0]
    with pytest.raises(Refused, match="changed after it was signed"):
        locks_of.signed(plan, [str(project.cache)], tmp_path / "l")
    for text, why in (("{}", "it is not signed"), (gpg.sign("[]", key.fingerprint), "no lock")):
        file.write_text(text)
        with pytest.raises(Refused, match=why):
            locks_of.signed(plan, [str(project.cache)], tmp_path / "l")
    locks_of.put(plan, lock, str(project.cache), key, QUIET)
    assert locks_of.signed(plan, [str(project.cache)], tmp_path / "l")


@GPG
def test_a_lock_of_another_plan_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "keys"))
    project = Project(tmp_path, "cpu", "big")
    lock = project.lock("cpu") / "mine" / "cpu" / "spack.lock"
    lock.with_name("lock.json").write_text(json.dumps({"inputs": "other"}))
    with pytest.raises(Refused, match="solved for something else"):
        locks_of.put(
            project.plan("cpu"), lock, str(project.cache), gpg.Key("0" * 40, "", True), QUIET
        )
    assert not list(project.cache.iterdir())


@GPG
def test_what_spack_built_is_signed_if_the_lock_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(tmp_path / "keys"))
    project = Project(tmp_path, "cpu")
    own, plan = gpg.create("A site of tests", "a@example.org"), project.plan("cpu")
    lock = project.lock("cpu") / "mine" / "cpu" / "spack.lock"
    node = next(one for one in read(lock).built() if one.name == "mvapich")
    handover = tmp_path / "handover" / "build-a"
    spec = {"hash": node.hash, "name": node.name, "version": node.version}
    parts = {
        "application/vnd.spack.spec.v5+json": gzip.compress(
            json.dumps({"spec": {"nodes": [spec]}}).encode()
        ),
        "application/vnd.spack.install.v2.tar+gzip": b"an archive",
    }
    rows = []
    for kind, blob in parts.items():
        digest = hashlib.sha256(blob).hexdigest()
        file = handover / "spack" / "blobs" / "sha256" / digest[:2] / digest
        file.parent.mkdir(parents=True)
        file.write_bytes(blob)
        rows.append({"mediaType": kind, "checksum": digest, "contentLength": len(blob)})
    with keyring():
        key = job_key()
        manifest = handover / manifest_of(node)
        manifest.parent.mkdir(parents=True)
        manifest.write_text(gpg.sign(json.dumps({"version": 3, "data": rows}), key.fingerprint))
        publish(key, handover)

    def signed(lock: Path | None) -> list[str]:
        rows = sign(plan, [handover.parent], str(project.cache), own, QUIET, lock)
        return [f"{row['package']} {row['result']}" for row in rows]

    with pytest.raises(Refused, match="not part of the plan"):
        signed(None)
    assert signed(lock) == ["mvapich signed"] and signed(lock) == ["mvapich already there"]
    found = believed(place(str(project.cache)), manifest_of(node))
    assert found and found.signer == own.fingerprint
    file.write_bytes(b"an archivf")
    with pytest.raises(Refused, match="other bytes"):
        signed(lock)


def builds(made: Made) -> list[str]:
    return [
        name
        for text in made.pipelines.files.values()
        for name in yaml.safe_load(text)
        if name.startswith("build:")
    ]
