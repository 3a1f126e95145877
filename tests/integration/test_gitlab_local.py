"""tests/gitlab: what the harness says of a pipeline is what GitLab would say of it."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gitlab import pipelines, schema
from gitlab.project import Project, Server
from gitlab.records import Collision
from gitlab.result import FAILED, NOT_RUN, PASSED, WARNED

# Seconds in which a job of one line has begun on the slowest machine.
PATIENCE = 120

PARENT = """\
stages: [plan, go, after]
plan:
  stage: plan
  script: [cp child.yml grand.yml out.txt .. || true, mkdir made, cp child.yml made/]
  artifacts: {paths: [made]}
go:
  stage: go
  trigger: {include: [{artifact: made/child.yml, job: plan}], strategy: depend}
after:
  stage: after
  script: [echo after]
"""
CHILD = """\
stages: [one, two]
first:
  stage: one
  script: [mkdir -p hand, echo from-first > hand/x, cp grand.yml made.yml]
  artifacts: {paths: [hand, made.yml]}
second: {stage: two, needs: [first], script: [cat hand/x, 'echo $CI_PIPELINE_SOURCE $WHO']}
deeper:
  stage: two
  trigger: {include: [{artifact: made.yml, job: first}], strategy: depend}
"""
GRAND = """\
last:
  script: ['echo "I am $CI_JOB_NAME"', COMMAND]
"""


def nested(tmp_path: Path, child: str = CHILD, command: str = "echo fine") -> Project:
    files = {"child.yml": child, "grand.yml": GRAND.replace("COMMAND", command), "out.txt": ""}
    return Project(tmp_path / "site", {".gitlab-ci.yml": PARENT, **files})


def one(tmp_path: Path, text: str, **files: str) -> Project:
    return Project(tmp_path / "site", {".gitlab-ci.yml": text, **files})


def test_jobs_of_all_three_levels_are_reported(tmp_path):
    project = nested(tmp_path)
    result = pipelines.run(project, {"WHO": "/some/body"})
    assert result.ok, str(result)
    assert result.names(PASSED) == [
        *("plan", "go", "go -> first", "go -> second"),
        *("go -> deeper", "go -> deeper -> last", "after"),
    ]
    assert result.job("go", "second").lines == ("from-first", "parent_pipeline /some/body")
    assert result.job("last").output == "I am last\nfine"
    assert result.job("last").environment["CI_PROJECT_PATH"] == "hpc/site"
    assert result.job("plan").seconds > 0
    # Artifacts stay where jobs find them: the work tree is as it was committed.
    assert project.git("status", "--porcelain") == ""


def test_a_failing_job_of_a_child_fails_the_pipeline(tmp_path):
    child = CHILD.replace("cat hand/x", "echo broken; exit 3")
    result = pipelines.run(nested(tmp_path, child))
    assert result.status == 0  # what gitlab-ci-local itself says of it
    assert not result.ok
    assert result.names(FAILED) == ["go", "go -> second"]
    assert result.job("second").status == 3
    assert result.problems[1].splitlines()[0] == "go -> second: exit status 3"
    assert "broken" in result.problems[1]


def test_a_failing_job_of_a_grandchild_fails_the_pipeline(tmp_path):
    result = pipelines.run(nested(tmp_path, command="exit 4"))
    assert result.status == 0
    assert not result.ok
    assert result.names(FAILED) == ["go", "go -> deeper", "go -> deeper -> last"]
    assert result.job("go").why == "go -> deeper failed"


def test_what_stands_behind_a_failed_job_is_not_run(tmp_path):
    child = CHILD.replace("mkdir -p hand", "exit 1")
    result = pipelines.run(nested(tmp_path, child))
    assert not result.ok
    assert result.names(NOT_RUN) == ["go -> second", "go -> deeper"]


def test_a_child_pipeline_without_jobs_fails(tmp_path):
    result = pipelines.run(nested(tmp_path, child="first: {rules: [{when: never}], script: [ls]}"))
    assert result.status == 0
    assert result.job("go").outcome == FAILED
    assert not result.ok


def test_a_file_that_cannot_be_read_fails_the_pipeline(tmp_path):
    result = pipelines.run(one(tmp_path, "a: {script: [ls], nosuchkey: 1}"))
    assert not result.ok
    assert "nosuchkey" in result.text


def test_a_child_that_cannot_be_read_fails_the_pipeline(tmp_path):
    result = pipelines.run(nested(tmp_path, child="first: {script: [1]}"))
    assert not result.ok
    assert result.job("plan").outcome == PASSED


# $$: the shell of the script, $PPID: the one that gitlab-ci-local started, whose end it asks for.
SHELLS = {
    "script": "echo $$",
    "shell": "echo $PPID",
    "recorder": "ps -o ppid= -p $PPID",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_job_that_is_killed_from_outside_has_failed(tmp_path, shell):
    mark = tmp_path / "mark"
    command = f"{SHELLS[shell]} > {mark}.new; mv {mark}.new {mark}; sleep 2; echo outlived"
    project = one(tmp_path, f"killed: {{script: ['{command}']}}\nother: {{script: [echo other]}}")
    killer = threading.Thread(target=kill, args=(mark,))
    killer.start()
    result = pipelines.run(project)
    killer.join()
    assert not result.ok
    assert result.names(FAILED) == ["killed"]
    assert result.job("killed").why.startswith("killed")
    assert result.problems[0].startswith("killed: killed")
    assert result.job("other").outcome == PASSED


def kill(mark: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not mark.exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.kill(int(mark.read_text()), signal.SIGKILL)


def test_failures_that_are_allowed_are_told_from_those_that_are_not(tmp_path):
    allowed = """\
always: {script: [exit 1], allow_failure: true}
this: {script: [exit 77], allow_failure: {exit_codes: [77]}}
"""
    result = pipelines.run(one(tmp_path / "a", allowed))
    assert result.ok, str(result)
    assert result.names(WARNED) == ["always", "this"]
    other = "other: {script: [exit 78], allow_failure: {exit_codes: [77]}}"
    result = pipelines.run(one(tmp_path / "b", other))
    assert result.status == 0  # gitlab-ci-local's own view
    assert not result.ok
    assert result.names(FAILED) == ["other"]


RULES = """\
stages: [a, b]
branch: {stage: a, rules: [{if: $CI_COMMIT_BRANCH}], script: [echo branch]}
asked:
  stage: a
  rules: [{if: '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
  script: ['echo $CI_MERGE_REQUEST_SOURCE_PROJECT_PATH']
ours:
  stage: a
  rules: [{if: $CI_MERGE_REQUEST_SOURCE_PROJECT_PATH == $CI_PROJECT_PATH}]
  script: [echo ours]
sealed: {stage: b, rules: [{if: '$CI_COMMIT_REF_PROTECTED == "true"'}], script: [cat $KEY]}
changed: {stage: b, rules: [{changes: [systems/*.yaml]}], script: [echo changed]}
"""


def test_jobs_exist_by_the_rules_of_branches_and_merge_requests(tmp_path):
    project = one(tmp_path, RULES, **{"systems/a.yaml": "1"})
    key = {"KEY": "secret text"}
    result = pipelines.run(project, file_variables=key)
    assert result.names() == ["branch", "sealed"]
    assert result.job("sealed").lines == ("secret text",)
    project.branch("edit")
    project.commit("edit", {"systems/a.yaml": "2"})
    assert pipelines.run(project).names() == ["branch", "changed"]
    asked = pipelines.run(project, source="merge_request_event")
    assert asked.names() == ["asked", "ours", "changed"]
    fork = pipelines.run(project, source="merge_request_event", fork=True)
    assert fork.names() == ["asked", "changed"]
    assert fork.job("asked").lines == ("fork-of/hpc/site",)
    assert pipelines.run(project, protected=True).names() == ["branch", "sealed", "changed"]


def test_manual_jobs_run_when_they_are_started(tmp_path):
    text = """\
deploy:
  when: manual
  resource_group: tree
  environment: {name: production}
  script: ['echo to $CI_ENVIRONMENT_NAME']
other: {script: [ls]}
"""
    project = one(tmp_path, text)
    result = pipelines.run(project)
    assert result.ok
    assert result.job("deploy").why == "manual"
    assert result.names(NOT_RUN) == ["deploy"]
    started = pipelines.run(project, manual_jobs=["deploy"])
    assert started.job("deploy").lines == ("to production",)


def test_siblings_whose_jobs_collide_are_refused_and_run_one_after_the_other(tmp_path):
    parent = """\
stages: [plan, go]
plan: {stage: plan, script: [cp child.yml made.yml], artifacts: {paths: [made.yml]}}
.go: {stage: go, trigger: {include: [{artifact: made.yml, job: plan}], strategy: depend}}
left: {extends: .go, variables: {WHO: left}}
right: {extends: .go, variables: {WHO: right}}
"""
    child = "same: {script: ['touch of-$WHO', sleep 2, ls of-*]}\n"
    project = one(tmp_path, parent, **{"child.yml": child})
    with pytest.raises(Collision, match="same ran at the same time in left and in right"):
        pipelines.run(project)
    result = pipelines.run(project, concurrency=1)
    assert result.job("left", "same").lines == ("of-left",)
    assert result.job("right", "same").lines == ("of-right",)
    with pytest.raises(KeyError, match="2 jobs are"):
        result.job("same")


def test_a_project_includes_files_of_another_and_jobs_reach_its_repository(tmp_path):
    server = Server(tmp_path / "server")
    library = """\
spec: {inputs: {who: {default: nobody}, tags: {type: array, default: []}}}
---
include: [{local: more.yml, inputs: {word: "$[[ inputs.who ]]"}}]
"hello:$[[ inputs.who ]]":
  tags: $[[ inputs.tags ]]
  script: ['git clone -q "https://$CI_SERVER_HOST/hpc/library.git" copy', ls copy]
"""
    more = "spec: {inputs: {word: {}}}\n---\nmore: {script: ['echo $[[ inputs.word ]]']}\n"
    files = {"site.yml": library, "more.yml": more}
    other = Project(tmp_path / "library", files, "hpc/library", server)
    text = f"""\
include:
  - {{project: hpc/library, ref: {other.head}, file: /site.yml,
     inputs: {{who: world, tags: [cluster]}}}}
"""
    project = Project(tmp_path / "site", {".gitlab-ci.yml": text}, "hpc/site", server)
    result = pipelines.run(project)
    assert result.ok, str(result)
    assert result.job("hello:world").lines == ("more.yml", "site.yml")
    assert result.job("more").lines == ("world",)
    assert "hello:world" in pipelines.preview(project)


def test_a_file_of_a_server_is_included(tmp_path):
    served = tmp_path / "served"
    served.mkdir()
    (served / "remote.yml").write_text("remote: {script: [echo remote]}")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=served)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}/remote.yml"
        result = pipelines.run(one(tmp_path, f"include: [{{remote: '{address}'}}]"))
        server.shutdown()
    assert result.job("remote").lines == ("remote",)


def test_a_job_sees_nothing_of_the_pipeline_that_runs_these_tests(tmp_path, monkeypatch):
    monkeypatch.setenv("CI_COMMIT_BRANCH", "outer")
    monkeypatch.setenv("GCL_VARIABLE_OUTER", "1")
    monkeypatch.setenv("OUTER", "1")
    result = pipelines.run(one(tmp_path, "a: {script: ['which bash', 'env']}"))
    seen = result.job("a").output
    assert "CI_COMMIT_BRANCH=main" in seen
    assert "OUTER" not in seen
    assert "bin/bash" in seen.splitlines()[0]
    assert str(tmp_path) not in seen.splitlines()[0]


def gone(stat: Path) -> bool:
    """Whether the process ended, within PATIENCE; one that nobody has waited for yet has."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            if stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.1)
    return False


def test_what_runs_too_long_is_stopped_with_all_that_it_started(tmp_path):
    mark = tmp_path / "pid"
    project = one(tmp_path, f"long: {{script: ['echo $$ > {mark}; sleep 1000']}}")
    for seconds in (5, 20, 80):  # until it is long enough for the job to have begun
        if not mark.exists():
            with pytest.raises(subprocess.TimeoutExpired):
                pipelines.run(project, timeout=seconds)
    assert gone(Path("/proc", mark.read_text().strip(), "stat"))


def test_jobs_submit_to_a_slurm(tmp_path):
    text = """\
batch:
  script:
    - printf '#!/bin/sh\\nsrun -N2 sh -c "echo on \\$SLURMD_NODENAME"\\n' > job.sh
    - sbatch --wait -N2 -o job.out job.sh
    - sort job.out
direct: {script: ['srun -N2 sh -c "echo on \\$SLURMD_NODENAME" | sort']}
failing: {script: ['sbatch --wait --wrap "exit 9"'], needs: [batch]}
"""
    result = pipelines.run(one(tmp_path, text), slurm=(2, 2), timeout=PATIENCE)
    assert result.job("batch").lines[-2:] == ("on n1", "on n2"), str(result)
    assert result.job("direct").lines[-2:] == ("on n1", "on n2")
    assert result.job("failing").status == 9
    assert result.names(FAILED) == ["failing"]


def test_files_are_held_against_the_schemas_of_gitlab_and_github():
    good = "a: {script: [!reference [.b, script], ls]}\n.b: {script: [ls]}\n"
    assert schema.errors(good) == []
    assert schema.errors("spec:\n  inputs: {x: {}}\n---\n" + good) == []
    assert "nosuch" in schema.errors("a: {script: [ls], nosuch: 1}")[0]
    assert schema.errors("a: {script: [")[0].startswith("cannot be read")
    flow = "on: push\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n"
    assert schema.errors(flow, schema.GITHUB) == []
    assert schema.errors(flow.replace("steps", "stepps"), schema.GITHUB)
