"""A new site's project runs its pipelines from end to end, for real but for the GitLab server.

One include, one settings file, one system. gitlab-ci-local runs the jobs; EasyBuild builds, ReFrame
submits to a Slurm of two nodes on loopback, packages are signed with the site's key and installed
into its shared tree. The tests stand in order: each goes on from the state that the one before
left, as a site's project does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from gitlab import pipelines, schema
from gitlab.pipelines import Result
from gitlab.sites import World, edited, world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

HPCC, IMB = "HPCC-1.5.0-gmpich-2026.11-ofi.eb", "IMB-2021.19.0-gmpich-2026.11-ofi.eb"
HPCC_BY_HAND = "easyconfigs/h/HPCC/HPCC-1.5.0-gmvapich-2026.11-ofi.eb"
BROKEN = {
    HPCC_BY_HAND: {
        'prebuildopts = "(cd hpl/setup': (
            'prebuildopts = "(echo this recipe is broken on purpose; exit 3) && (cd hpl/setup'
        )
    },
    f"easyconfigs/i/IMB/{IMB}": {
        "local_wheel = 'impi_rt-%(version)s": "local_wheel = 'impi_lost-%(version)s",
        "'708b4336": "'00000000",
    },
    "tests/reframe/world.py": {
        "if found != [(rank, self.ranks, total)": "if found != [(rank, self.ranks, total + 1)"
    },
}
WITHOUT = """\
      {name}: left out by this change
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pipelines.needs_slurm()
    with world(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def broken(here: World) -> str:
    """A commit of mvapich-stack in which a recipe, a source and a check are wrong."""
    here.stack.branch("broken")
    commit = here.stack.commit("Break what can break", edited(here.stack, BROKEN))
    here.stack.push()
    return commit


def run(here: World, *, trusted: bool, **options: object) -> Result:
    """The pipeline of what the site's project has checked out."""
    return pipelines.run(
        here.site,
        here.variables(),
        source="push" if trusted else "merge_request_event",
        protected=trusted,
        file_variables={"MVSTACK_SIGNING_KEY": here.secret} if trusted else {},
        manual_jobs=["deploy"] if trusted else [],
        slurm=(2, 2),
        timeout=1400,
        **options,  # type: ignore[arg-type]
    )


def without(here: World, *names: str) -> str:
    text = (here.site.folder / "systems" / "mini.yaml").read_text()
    return text + "".join(WITHOUT.format(name=name) for name in names)


def tail(result: Result, *job: str) -> str:
    """The last lines of a job: what a person sees first."""
    return "\n".join(result.job(*job).lines[-12:])


def test_the_first_pipeline_ends_with_modules_that_users_load(here: World) -> None:
    result = run(here, trusted=True)
    assert result.ok, "\n".join(result.problems)
    builds = [job for job in result.jobs if job.name.startswith("build:")]
    assert builds and all(job.outcome == "passed" for job in builds)
    done = "\n".join(job.output for job in builds)
    assert "install HPCC 1.5.0" in done and "install MPICH" not in done.replace(
        "install MPICH 4.0.2 from", ""
    ), "the MPI comes from the cache, and what stands on it is built"
    plan = result.job("plan").output
    assert re.search(r"in all: 2 builds in \d jobs? for 1 partition", plan)
    for name in ("stage", "validate", "sign", "deploy", "report", "clean"):
        assert result.job("run", name).outcome == "passed", name
    validated = result.job("run", "validate").output
    assert re.search(r"(\d+) of \1 checks passed, 0 skipped", validated), validated[-600:]
    tree = here.shared / "apps" / "2026.11" / "mini-cpu"
    assert (tree / "modules" / "Core" / "mvapich-stack" / "2026.11.lua").is_file()
    assert "No check has run" not in result.job("run", "report").output
    assert not list((here.shared / "s").iterdir()), "the staging folder is empty afterwards"
    rows = json.loads((here.shared / "cache" / "easybuild" / "index.json").read_text())
    assert {HPCC, IMB} <= {row["easyconfig"] for row in rows}


def test_every_pipeline_that_ran_is_one_for_gitlab(here: World) -> None:
    files = list((here.site.folder / ".gitlab-ci-local").rglob("ci-pipelines/*.yml"))
    assert files
    for file in files:
        assert schema.errors(file.read_text()) == [], file.name


def test_the_same_commit_again_builds_nothing(here: World) -> None:
    result = run(here, trusted=True)
    assert result.ok, "\n".join(result.problems)
    assert not [job for job in result.jobs if job.name.startswith("build:")]
    assert "6 changed and already in a cache" in result.job("plan").output
    assert result.job("run", "deploy").outcome == "passed"


def test_a_change_of_words_does_nothing(here: World) -> None:
    text = (here.site.folder / "systems" / "mini.yaml").read_text()
    here.site.branch("main")
    here.site.branch("words")
    here.site.commit(
        "words", {"systems/mini.yaml": "# A comment.\n" + text.replace("two nodes", "both nodes")}
    )
    result = run(here, trusted=False)
    assert result.ok, "\n".join(result.problems)
    assert [job.name for job in result.jobs if job.pipeline] == ["nothing"]


def test_a_broken_recipe_fails_its_build_and_says_why(here: World, broken: str) -> None:
    here.site.branch("main")
    here.site.branch("recipe")
    here.site.commit(
        "recipe",
        {
            ".gitlab-ci.yml": here.including(broken),
            "systems/mini.yaml": without(here, "IMB"),
        },
    )
    result = run(here, trusted=False)
    assert not result.ok
    plan = result.job("plan").output
    assert "HPCC 1.5.0 changed (easyconfig): 1 build on 1 system (mini/cpu); MPI unchanged" in plan
    (job,) = [one for one in result.jobs if one.name.startswith("build:")]
    assert job.outcome == "failed" and "HPCC" in job.name
    assert "this recipe is broken on purpose" in tail(result, "run", job.name)
    assert result.job("run", "stage").outcome == "not run"
    assert not {"sign", "deploy"} & {one.name for one in result.jobs}


def test_a_source_that_cannot_be_had_names_every_place_that_was_asked(
    here: World, broken: str
) -> None:
    here.site.branch("main")
    here.site.branch("source")
    here.site.commit(
        "source",
        {
            ".gitlab-ci.yml": here.including(broken),
            "mvstack-ci.yaml": here.settings(mirrors="[http://127.0.0.1:9/sources]"),
            "systems/mini.yaml": without(here, "HPCC"),
        },
    )
    result = run(here, trusted=False)
    assert not result.ok
    (job,) = [one for one in result.jobs if one.name.startswith("build:")]
    assert job.outcome == "failed" and "IMB" in job.name
    said = tail(result, "run", job.name)
    assert "127.0.0.1:9: refuses connections" in said and "impi_lost-2021.19.0" in said
    assert result.job("run", "stage").outcome == "not run"


def test_a_failed_check_keeps_what_is_deployed_as_it_is(here: World, broken: str) -> None:
    index = (here.shared / "cache" / "easybuild" / "index.json").read_bytes()
    here.site.branch("main")
    here.site.branch("check")
    here.site.commit(
        "check",
        {
            ".gitlab-ci.yml": here.including(broken),
            "systems/mini.yaml": without(here, "HPCC", "IMB"),
        },
    )
    result = run(here, trusted=False)
    assert not result.ok
    assert not [job for job in result.jobs if job.name.startswith("build:")]
    assert result.job("run", "stage").outcome == "passed"
    job = result.job("run", "validate")
    assert job.outcome == "failed"
    assert "WorldSize" in tail(result, "run", "validate")
    assert "ranks were asked for" in job.output
    assert (here.shared / "cache" / "easybuild" / "index.json").read_bytes() == index
    # gitlab-ci-local starts no `when: always` behind a stage that was not run; GitLab does
    assert result.job("run", "clean").when == "always"


def test_a_lost_runner_fails_its_job_and_the_next_run_goes_through(here: World) -> None:
    here.site.branch("main")
    here.site.branch("lost")
    good = (here.site.folder / "systems" / "mini.yaml").read_text()
    here.stack.branch("main")
    changed = edited(here.stack, {HPCC_BY_HAND: {"buildopts = '": "buildopts = 'CPPFLAGS=-DLOST "}})
    commit = here.stack.commit("Build HPCC otherwise", changed)
    here.stack.push()
    here.site.commit("lost", {".gitlab-ci.yml": here.including(commit), "systems/mini.yaml": good})
    killed: list[int] = []
    ended = threading.Event()
    watcher = threading.Thread(target=kill_the_build, args=(here, killed, ended))
    watcher.start()
    try:
        result = run(here, trusted=False)
    finally:
        ended.set()
        watcher.join()
    assert killed, "no build was seen"
    assert not result.ok
    (job,) = [one for one in result.jobs if one.name.startswith("build:")]
    assert job.outcome == "failed"
    assert result.job("run", "stage").outcome == "not run"
    again = run(here, trusted=False)
    assert again.ok, "\n".join(again.problems)
    assert again.job("run", job.name).outcome == "passed"


def kill_the_build(here: World, killed: list[int], ended: threading.Event) -> None:
    """SIGKILL to the command that builds, as soon as EasyBuild runs below it."""
    while not ended.is_set():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            mine = words[0].startswith(str(here.shared).encode())  # Python of the job's clone
            if mine and b"easybuild.main" in words and HPCC.encode() in words:
                parent = int((path.parent / "stat").read_text().rpartition(")")[2].split()[1])
                killed.append(parent)
                os.kill(parent, signal.SIGKILL)
                return
        time.sleep(0.2)
