"""Jobs that hand over to each other, with a small program in place of EasyBuild, and what fails.

Real builds, and a stage and a signature of what they made, are in tests/integration.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cache_tree import Site, Stocked
from install_tree import look, plan_in, states

from mvstack.builders.base import Run
from mvstack.builders.easybuild import install as run
from mvstack.cache import gpg, store
from mvstack.cache.place import place
from mvstack.ci import handover
from mvstack.ci.handover import Given, caches_below, keyring
from mvstack.ci.sign import sign
from mvstack.ci.steps import below, build, not_committed, padded, stage
from mvstack.model.ci import TREE_LENGTH as TREE
from mvstack.plan.types import Plan
from mvstack.sources.store import Store
from mvstack.support.errors import BuildFailed, InvalidInput, Refused
from mvstack.support.git import commit_of
from mvstack.support.progress import Progress

pytestmark = pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed")
QUIET = Progress(mode="quiet")
MPI = frozenset(("GCC-12.2.0.eb", "MVAPICH-4.0-GCC-12.2.0-ucx.eb", "gmvapich-2026.11-ucx.eb"))
HPCC = "HPCC-1.5.0-gmvapich-2026.11-ucx.eb"

# What stands for EasyBuild: leaves a package with a program that holds the path of its tree.
PROGRAM = """\
#!/bin/bash
file="${{!#}}"; name="${{file%%-*}}"; stem="${{file%.eb}}"
echo "$file" >> {top}/built
[ ! -f "{top}/breaks-$name" ] || {{ echo "ERROR: no luck"; exit 1; }}
line=$(awk -F '\\t' -v f="$file" '$1 == f' {top}/modules)
module=$(cut -f 2 <<< "$line"); tree=$(cut -f 3 <<< "$line")
own="$tree/software/$name/${{stem#"$name"-}}"
mkdir -p "$own/bin" "$(dirname "$module")" "$tree/ebfiles_repo/$name"
printf '\\x7fELF\\0%s/software/x\\0end' "$tree" > "$own/bin/tool"
echo "name = '$name'" > "$tree/ebfiles_repo/$name/$file"
echo "prepend_path('PATH', '$own')" > "$module"
"""


class Pipeline(Site):
    """A site whose jobs build below roots of the same length."""

    def __init__(self, top: Path, patch: pytest.MonkeyPatch, key_home: Path) -> None:
        super().__init__(top, patch, key_home)
        (top / "easybuild").write_text(PROGRAM.format(top=top))
        self.handover, self.public = top / "handover", top / "site.asc"
        fetcher = Stocked(Store(top / "sources"), [], top / "state")
        patch.setattr("mvstack.ci.steps.fetcher_for", lambda *_: fetcher)
        self.public.write_text(gpg.export(gpg.own_key().fingerprint))

    def plan(self, job: str) -> Plan:
        plan = plan_in(self.top / job)
        rows = [f"{i.node.key}\t{i.module_file}\t{plan.tree}\n" for i in look(plan)]
        (self.top / "modules").write_text("".join(rows))
        return plan

    def job(self, name: str, nodes: frozenset[str], *take: Path) -> list[dict[str, Any]]:
        caches = [str(self.cache)] if self.cache.is_dir() else []
        given = Given(take, caches, [self.public])
        return build(self.plan(name), nodes, self.handover / name, given, QUIET, 1)

    def stage(self, trust: list[Path]) -> list[dict[str, Any]]:
        return stage(self.plan("job-s"), Given([self.handover], [], trust), QUIET)

    def sign(self, plan: Plan | None = None) -> list[dict[str, Any]]:
        return sign(
            plan or self.plan("job-s"), [self.handover], str(self.cache), gpg.own_key(), QUIET
        )


@pytest.fixture(scope="module")
def key_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("keys") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MVSTACK_GNUPGHOME", str(home))
        gpg.create("Site of the tests", "a@example.org")
    return home


@pytest.fixture(scope="module")
def job_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key as a job makes one; made once, because each takes a second or more."""
    home = tmp_path_factory.mktemp("job") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MVSTACK_GNUPGHOME", str(home))
        handover.job_key()
    return home


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_home: Path) -> Iterator[Pipeline]:
    umask = os.umask(0o022)
    yield Pipeline(tmp_path, monkeypatch, key_home)
    os.umask(umask)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, key_home: Path) -> Iterator[Pipeline]:
    """The jobs of the MPI and of HPCC have run, once for all tests."""
    umask = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        made = Pipeline(tmp_path_factory.mktemp("two"), patch, key_home)
        made.job("job-a", MPI)
        made.job("job-b", frozenset([HPCC]), made.handover)
        shutil.copytree(made.handover, made.top / "kept")
        yield made
    os.umask(umask)


@pytest.fixture
def two(ran: Pipeline) -> Pipeline:
    """The same, with what they handed over as they left it, and nothing of other tests."""
    for name in ("handover", "cache", "job-c", "job-s", "d"):
        shutil.rmtree(ran.top / name, ignore_errors=True)
    shutil.copytree(ran.top / "kept", ran.handover)
    (ran.top / "built").write_text("\n".join(ran.built()[:4]) + "\n")
    return ran


# --- what goes well ------------------------------------------------------------------------------


def test_each_job_builds_its_part_and_the_stage_has_it_all(two: Pipeline) -> None:
    assert two.built() == [
        *(i.node.key for i in look(two.other) if i.node.key in MPI),
        HPCC,
    ]
    assert {row.easyconfig for row in store.rows(place(str(two.handover / "job-a")))} == MPI
    assert [row.easyconfig for row in store.rows(place(str(two.handover / "job-b")))] == [HPCC]
    plan = two.plan("job-s")
    rows = two.stage([])
    assert {row["result"] for row in rows} == {"cached"}
    assert set(states(plan).values()) == {"present"}
    assert (Path(plan.tree) / "modules" / "Core" / "mvapich-stack" / "2026.11.lua").is_file()
    for job in ("job-a", "job-b"):  # a part opens nothing
        assert not list(Path(two.plan(job).tree).glob("modules/Core/mvapich-stack*"))


def test_what_is_signed_a_site_installs_with_its_own_key_alone(two: Pipeline) -> None:
    rows = two.sign()
    assert {row["result"] for row in rows} == {"signed"} and len(rows) == 4
    assert [row["result"] for row in two.sign()] == ["already there"] * 4
    shutil.rmtree(two.handover)
    installed = two.install(plan_in(two.top / "d"), only=True)
    assert {row["signed_by"] for row in installed} == {gpg.own_key().fingerprint}
    assert installed[-1]["built_in"] == two.plan("job-b").tree


def test_a_wanted_one_that_a_cache_has_is_taken_and_not_handed_on(two: Pipeline) -> None:
    two.sign()
    shutil.rmtree(two.handover)
    rows = two.job("job-c", MPI | {HPCC})
    assert {row["result"] for row in rows} == {"cached"} and not two.handover.exists()
    assert len(two.built()) == 4


def test_the_same_job_again_hands_over_what_it_built_before(two: Pipeline) -> None:
    shutil.rmtree(two.handover / "job-b")
    assert two.job("job-b", frozenset([HPCC]), two.handover) == []
    assert len(store.rows(place(str(two.handover / "job-b")))) == 1 and len(two.built()) == 4


def test_a_failed_build_says_why_and_hands_nothing_on(pipeline: Pipeline) -> None:
    (pipeline.top / "breaks-MVAPICH").touch()
    with pytest.raises(BuildFailed, match="no luck"):
        pipeline.job("job-a", MPI)
    assert not pipeline.handover.exists()


# --- what is refused -----------------------------------------------------------------------------


def archive(two: Pipeline) -> Path:
    return next(two.handover.glob("job-a/easybuild/*/*/*.tar.gz"))


def manifest(two: Pipeline) -> Path:
    return next(two.handover.glob("job-a/easybuild/*/*/*.json.asc"))


def changed_byte(two: Pipeline) -> None:
    content = bytearray(archive(two).read_bytes())
    content[len(content) // 2] ^= 1
    archive(two).write_bytes(content)


def changed_manifest(two: Pipeline) -> None:
    manifest(two).write_text(manifest(two).read_text().replace("easybuild", "easybulid"))


def archive_gone(two: Pipeline) -> None:
    archive(two).unlink()


def key_gone(two: Pipeline) -> None:
    shutil.rmtree(two.handover / "job-a" / "keys")


DAMAGES: list[tuple[Callable[[Pipeline], None], str]] = [
    (changed_byte, "sha256"),
    (changed_manifest, "changed after it was signed"),
    (archive_gone, "is not there"),
    (key_gone, "not trusted"),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_what_was_changed_on_its_way_is_refused_by_all(
    two: Pipeline, damage: Callable[[Pipeline], None], why: str
) -> None:
    damage(two)
    with pytest.raises(Refused, match=why):
        two.stage([two.public])
    with pytest.raises(Refused, match=why):
        two.job("job-c", frozenset([HPCC]), two.handover)
    with pytest.raises(Refused, match=why) as caught:
        two.sign()
    assert "run the job that built it again" in caught.value.problems[0].todo
    assert not list(two.cache.rglob("*.asc")) and len(two.built()) == 4


def test_a_key_of_another_handover_does_not_count_when_it_is_signed(
    two: Pipeline,
) -> None:
    """Staging believes any job of the pipeline; the signature asks for the very job."""
    key = next((two.handover / "job-a" / "keys").iterdir())
    other = next((two.handover / "job-b" / "keys").iterdir())
    shutil.copy(key, two.handover / "job-b" / "keys")
    key.unlink()
    with pytest.raises(Refused, match="not trusted"):
        two.sign()
    assert other.is_file()


def test_what_is_needed_and_was_not_handed_over_is_named(pipeline: Pipeline) -> None:
    pipeline.job("job-a", MPI - {"gmvapich-2026.11-ucx.eb"})
    with pytest.raises(Refused) as caught:
        pipeline.job("job-b", frozenset([HPCC]), pipeline.handover)
    (problem,) = caught.value.problems
    assert "gmvapich-2026.11-ucx.eb" in problem.message and HPCC in problem.because
    assert str(pipeline.handover / "job-a") in problem.found
    assert "the job that builds it" in problem.todo and len(pipeline.built()) == 2


def test_a_node_that_the_plan_has_not_is_named(pipeline: Pipeline) -> None:
    with pytest.raises(InvalidInput, match="not part of this plan") as caught:
        pipeline.job("job-a", frozenset(["HPCC-1.5.1-gmvapich-2026.11-ucx.eb"]))
    assert caught.value.problems[0].nearest == HPCC


def test_what_no_plan_has_is_not_signed(two: Pipeline) -> None:
    other = plan_in(two.top / "job-s", ("[nfs, ufs]", "[lustre, nfs, ufs]"))
    with pytest.raises(Refused, match="not part of the plan") as caught:
        two.sign(other)
    assert len(caught.value.problems) == 3 and not list(two.cache.rglob("*.asc"))
    assert len(two.sign()) == 4


def test_a_stage_of_nothing_says_so(pipeline: Pipeline) -> None:
    with pytest.raises(Refused, match="nothing was handed over") as caught:
        pipeline.stage([pipeline.public])
    assert str(pipeline.handover) in caught.value.problems[0].found


def test_a_handover_that_was_committed_is_not_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    not_committed([Path("handover")])
    (tmp_path / "handover").mkdir()
    (tmp_path / "handover" / "x").write_text("x")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], check=True)
    with pytest.raises(Refused):
        not_committed([Path("handover")])


def test_a_commit_that_a_force_push_took_away_is_seen(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert not commit_of(tmp_path, "0123456789" * 4)


# --- keys and folders ----------------------------------------------------------------------------


def test_a_jobs_keyring_has_what_was_given_and_nothing_else(
    pipeline: Pipeline, job_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = gpg.own_key()
    monkeypatch.setenv("MVSTACK_GNUPGHOME", str(job_home))
    job = gpg.own_key()
    keys = pipeline.top / "taken" / "keys"
    keys.mkdir(parents=True)
    (keys / f"{job.fingerprint}.asc").write_text(gpg.export(job.fingerprint))
    before = sorted(path.name for path in job_home.rglob("*"))
    with keyring():
        assert gpg.trusted() == []
        inside = gpg.home()
    with keyring([keys.parent]):
        assert [(key.fingerprint, key.own) for key in gpg.trusted()] == [(job.fingerprint, False)]
    with keyring([keys.parent], [pipeline.public]):
        found = {key.fingerprint for key in gpg.trusted()}
        assert found == {job.fingerprint, site.fingerprint}
    assert gpg.home() == job_home and not inside.exists()
    assert sorted(path.name for path in job_home.rglob("*")) == before


def test_a_key_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    none, bad = tmp_path / "none.asc", tmp_path / "bad.asc"
    bad.write_text("hello\n")
    for file in (none, bad):
        with pytest.raises(InvalidInput) as caught, keyring((), [file]):
            pass
        assert caught.value.problems[0].where == str(file)


def test_caches_are_found_below_folders_and_as_themselves(tmp_path: Path) -> None:
    for name in ("b/easybuild/os", "a/spack/v3", "a/spack/easybuild", "c/deep/easybuild"):
        (tmp_path / "h" / name).mkdir(parents=True)
    (tmp_path / "h" / "empty").mkdir()
    (tmp_path / "h" / "link").symlink_to(tmp_path / "h" / "b")
    top = tmp_path / "h"
    assert caches_below([top, tmp_path / "none"]) == [top / "a", top / "b", top / "c" / "deep"]
    assert caches_below([top / "b", top / "b"]) == [top / "b"]


@pytest.mark.parametrize("root", ["/builds", "/home/gitlab-runner/builds/x1/0/hpc/stack"])
def test_all_jobs_build_below_paths_of_one_length(root: str) -> None:
    tail = below(plan_in(Path(root)))
    made = padded(Path(root), tail)
    assert len(f"{made}/{tail}") == TREE and str(made).startswith(f"{root}/")
    assert padded(made, tail) == made
    assert len(plan_in(made).tree) == TREE


def test_a_path_that_is_too_long_to_build_in_is_refused() -> None:
    for length in (TREE - len("/x"), TREE):
        with pytest.raises(InvalidInput, match="too long a path"):
            padded(Path("/" + "a" * length), "x")
    assert len(str(padded(Path("/" + "a" * (TREE - 5)), "x"))) == TREE - len("/x")


def test_without_wanted_nothing_is_partial(pipeline: Pipeline) -> None:
    plan = pipeline.plan("whole")
    fetcher = Stocked(Store(pipeline.top / "sources"), [], pipeline.top / "state")
    assert len(run.install(plan, Run(fetcher, QUIET))) == 4
    assert json.loads((Path(plan.tree) / "records" / "plan.json").read_text())["system"]
    assert (Path(plan.tree) / "modules" / "Core" / "mvapich-stack" / "2026.11.lua").is_file()
