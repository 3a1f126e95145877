"""The pipeline of this repository, the workflow for GitHub and .ci/run call the same steps."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from gitlab import pipelines, schema
from gitlab.project import Project

from mvstack.ci.pipeline import Context, conductor
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.support.home import DATA

OWN = DATA / ".gitlab-ci.yml"
WORKFLOW = DATA / ".github" / "workflows" / "mvapich-stack.yml"


def steps() -> list[str]:
    """The steps of .ci/run, in order."""
    return re.findall(r"^step (\w+) ", (DATA / ".ci" / "run").read_text(), re.M)


def test_the_pipeline_runs_every_step_and_calls_nothing_else_to_test() -> None:
    data = yaml.safe_load(OWN.read_text())
    stage = {name: job for name, job in data.items() if (job or {}) and "script" in job}
    tests = {name: job["script"] for name, job in stage.items() if job["stage"] == "test"}
    assert tests == {name: [f".ci/run {name}"] for name in steps()}
    assert set(data["run"]["needs"]) >= {"plan", "tests"}


def test_the_workflow_runs_every_step() -> None:
    data = yaml.safe_load(WORKFLOW.read_text())
    job = data["jobs"]["step"]
    assert job["strategy"]["matrix"]["name"] == steps()
    assert ".ci/run ${{ matrix.name }}" in [step.get("run") for step in job["steps"]]
    assert data["permissions"] == {"contents": "read"}


def test_all_of_them_are_valid_for_their_schemas() -> None:
    assert schema.errors(OWN.read_text()) == []
    assert schema.errors((DATA / "ci" / "site.yml").read_text()) == []
    assert schema.errors(WORKFLOW.read_text(), schema.GITHUB) == []


def test_jobs_run_in_the_image_of_the_policy() -> None:
    image = ci_policy().image.name
    assert yaml.safe_load(OWN.read_text())["default"]["image"] == image
    for job in yaml.safe_load(WORKFLOW.read_text())["jobs"].values():
        assert job["container"] == image


def test_retries_are_those_of_the_policy() -> None:
    own = yaml.safe_load(OWN.read_text())["default"]["retry"]
    policy = ci_policy().jobs.retry
    assert own == {"max": policy.max, "when": list(policy.when)}
    assert "script_failure" not in own["when"] and "always" not in own["when"]


CHILD = """\
stages: [build]
build-{name}:
  stage: build
  script: ["{script}"]
"""


def conducted(tmp_path: Path, last: str) -> pipelines.Result:
    """A parent whose job `plan` hands the conductor for two partitions on, as ours does."""
    settings = Settings(systems=[Site(system="alps", staging="/s")])
    text = conductor({"alps-cpu": False, "expanse-cpu": False}, Context(settings, trusted=False))
    assert schema.errors(text) == []
    made = tmp_path / "made"
    made.mkdir()
    (made / "pipeline.yml").write_text(text)
    (made / "alps-cpu.yml").write_text(CHILD.format(name="alps", script="echo alps"))
    (made / "expanse-cpu.yml").write_text(CHILD.format(name="expanse", script=last))
    parent = """\
stages: [plan, run]
plan:
  stage: plan
  script: ["cp -r $MADE ci-pipelines"]
  artifacts: {paths: [ci-pipelines/]}
run:
  stage: run
  needs: [plan]
  variables: {PARENT_PIPELINE_ID: $CI_PIPELINE_ID}
  trigger: {include: [{artifact: ci-pipelines/pipeline.yml, job: plan}], strategy: depend}
"""
    project = Project(tmp_path / "project", {".gitlab-ci.yml": parent})
    return pipelines.run(project, {"MADE": str(made), "MVSTACK_PIPELINES": str(made)})


def test_a_conductor_runs_the_pipeline_of_each_partition(tmp_path: Path) -> None:
    result = conducted(tmp_path, "echo expanse")
    assert result.ok, "\n".join(result.problems)
    assert result.job("run", "alps-cpu", "build-alps").outcome == "passed"
    assert result.job("run", "expanse-cpu", "build-expanse").outcome == "passed"


def test_a_partition_that_fails_fails_the_whole_and_not_the_other(tmp_path: Path) -> None:
    result = conducted(tmp_path, "echo no compiler here; exit 6")
    assert not result.ok
    assert result.job("run", "alps-cpu", "build-alps").outcome == "passed"
    job = result.job("run", "expanse-cpu", "build-expanse")
    assert job.outcome == "failed" and "no compiler here" in job.output
