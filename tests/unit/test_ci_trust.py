"""Who may hold keys: the pipeline of a change that nobody has accepted has no job that could."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from gitlab import schema
from hypothesis import given
from hypothesis import strategies as st

from mvstack.ci.changes import todo
from mvstack.ci.generate import NONE, base_of, trust_of
from mvstack.ci.graph import Graph, read_graphs
from mvstack.ci.pipeline import Context, Pipelines, Target, pipelines, scheduled
from mvstack.diff.sides import Side
from mvstack.model.ci import Images, Runners, Settings, Site, load_settings
from mvstack.model.ci_policy import ci_policy
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA

PROTECTED = {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_REF_PROTECTED": "true"}
# Commands that sign, push, deploy or publish: what an untrusted pipeline must not have.
POWERFUL = re.compile(
    r"mvstack (?:ci (?:sign|deploy)|cache push|image (?:build|test|publish)|install)\b"
)


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return read_graphs(Side("the working tree", DATA, DATA / "environments" / "rendered"))


def site(name: str) -> Site:
    return Site(
        system=name,
        runners=Runners(build=["b"], cluster=["c"], protected=["p"]),
        staging="/shared/staging",
        root="/apps",
        images=Images(
            folder="/images", to="/published", settings="packer.json", vulnerabilities="unknown"
        ),
    )


def made(graphs: dict[str, Graph], names: list[str], trusted: bool) -> Pipelines:
    """Everything of the partitions ``names`` is new."""
    settings = Settings(
        systems=[site(name.partition("/")[0]) for name in dict.fromkeys(names)],
        caches=["/cache"],
        push="/cache",
        trust=["keys/site.asc"],
    )
    targets = [
        Target(
            todo(None, graphs[name], (), ci_policy().validation),
            site(name.partition("/")[0]),
            name,
        )
        for name in names
    ]
    return pipelines(targets, Context(settings, trusted=trusted))


def jobs(text: str) -> dict[str, dict[str, Any]]:
    """The jobs of a pipeline; hidden ones are in those that extend them."""
    known = ("stages", "default", "workflow", "variables", "include", "spec")
    data = yaml.safe_load(text)
    return {
        name: {**data.get(job.get("extends"), {}), **job}
        for name, job in data.items()
        if name not in known and not name.startswith(".")
    }


# who has one of them signs what every cluster installs, or publishes images at the site's cost
SECRETS = ("MVSTACK_SIGNING_KEY", "AWS_SECRET_ACCESS_KEY", "AZURE_CLIENT_SECRET")
SETS = (["qemu-debian12/mpich"], ["alps/cpu"], ["qemu-debian12/mpich", "azure-ndv5/gpu"])


@pytest.mark.parametrize("names", SETS, ids=str)
def test_an_untrusted_pipeline_names_no_protected_variable_and_has_no_powerful_job(
    graphs: dict[str, Graph], names: list[str]
) -> None:
    found = made(graphs, names, trusted=False)
    assert found.files
    for text in found.files.values():
        for variable in SECRETS:
            assert variable not in text
        assert not POWERFUL.search(text)
        for name, job in jobs(text).items():
            assert "environment" not in job, name
            assert "p" not in job.get("tags", []), f"{name} goes to a protected runner"


@pytest.mark.parametrize("names", SETS, ids=str)
def test_a_trusted_pipeline_has_keys_in_protected_jobs_alone(
    graphs: dict[str, Graph], names: list[str]
) -> None:
    found = made(graphs, names, trusted=True)
    powerful = 0
    for text in found.files.values():
        for name, job in jobs(text).items():
            if not POWERFUL.search(str(job.get("script", ""))):
                continue
            powerful += 1
            rules = job["rules"]
            assert [rule["if"] for rule in rules] == ['$CI_COMMIT_REF_PROTECTED == "true"'], name
            assert job["tags"] == ["p", "protected"], name
            assert re.fullmatch(r"[A-Za-z0-9 ._/-]{1,255}", job["resource_group"]), name
            assert job["interruptible"] is False, name
            if name in ("sign", "image:test"):
                assert job["environment"] == {"name": "mvstack-signing", "action": "access"}
            elif "environment" in job:
                assert rules[0]["when"] == "manual", name
    assert powerful >= 2


@pytest.mark.parametrize("names", SETS, ids=str)
def test_the_key_is_a_variable_of_jobs_that_sign_and_build_nothing(
    graphs: dict[str, Graph], names: list[str]
) -> None:
    for text in made(graphs, names, trusted=True).files.values():
        signing = [
            name
            for name, job in jobs(text).items()
            if (job.get("environment") or {}).get("name") == "mvstack-signing"
        ]
        assert set(signing) <= {"sign", "image:test", "image:publish"}
        for name, job in jobs(text).items():
            assert ("MVSTACK_SIGNING_KEY" in str(job)) <= (name in signing), name


@pytest.mark.parametrize("names", SETS, ids=str)
def test_every_job_of_a_trusted_pipeline_runs_on_a_runner_of_its_own(
    graphs: dict[str, Graph], names: list[str]
) -> None:
    for text in made(graphs, names, trusted=True).files.values():
        for name, job in jobs(text).items():
            if "tags" in job and not name.startswith("pipelines"):
                assert "protected" in job["tags"], name
    for text in made(graphs, names, trusted=False).files.values():
        assert (
            "protected" not in text.replace("CI_COMMIT_REF_PROTECTED", "").split("variables:")[-1]
        )


@pytest.mark.parametrize("names", SETS, ids=str)
def test_no_pipeline_is_left_out_of_merge_requests(
    graphs: dict[str, Graph], names: list[str]
) -> None:
    """Jobs without rules are for branches and tags alone, unless the workflow has rules."""
    for text in made(graphs, names, trusted=False).files.values():
        assert yaml.safe_load(text)["workflow"]["rules"] == [{"when": "always"}]


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("names", SETS, ids=str)
def test_every_generated_pipeline_is_one_for_gitlab(
    graphs: dict[str, Graph], names: list[str], trusted: bool
) -> None:
    for name, text in made(graphs, names, trusted).files.items():
        assert schema.errors(text) == [], name


def test_the_schedule_holds_no_key(graphs: dict[str, Graph]) -> None:
    policy = ci_policy()
    name = "qemu-debian12/mpich"
    one = site("qemu-debian12")
    settings = Settings(systems=[one], push="/cache")
    target = Target(todo(None, graphs[name], (), policy.validation), one, name)
    found = scheduled([target], policy.validation.weekly, Context(settings, trusted=True))
    (text,) = found.files.values()
    assert schema.errors(text) == []
    assert not POWERFUL.search(text)
    assert "--tag nightly" in text


def test_what_a_site_includes_names_no_protected_variable() -> None:
    text = (DATA / "ci" / "site.yml").read_text()  # `render --check` holds it to its template
    for variable in SECRETS:
        assert variable not in text
    own = (DATA / ".gitlab-ci.yml").read_text()
    assert not POWERFUL.search(text) and not POWERFUL.search(own)


def test_every_image_of_a_job_is_pinned_by_digest() -> None:
    files = [
        DATA / ".gitlab-ci.yml",
        DATA / "ci" / "site.yml",
        *(DATA / ".github" / "workflows").glob("*.yml"),
    ]
    found = 0
    for file in files:
        for line in re.findall(
            r"^\s*(?:image|container|default):\s*(\S*/?\S*:\S+)\s*$", file.read_text(), re.M
        ):
            if "mvstack-ci.yaml" in line or "$[[" in line:
                continue
            found += 1
            assert re.search(r"@sha256:[0-9a-f]{64}\"?$", line), f"{file.name}: {line}"
    assert found >= 3
    for action in re.findall(r"uses: (\S+)", files[-1].read_text()):
        assert re.search(r"@[0-9a-f]{40}$", action), action


def test_pipelines_of_merge_requests_are_not_trusted() -> None:
    assert trust_of(PROTECTED)[0]
    assert not trust_of({})[0]
    assert not trust_of({**PROTECTED, "CI_COMMIT_REF_PROTECTED": "false"})[0]
    request = {**PROTECTED, "CI_PIPELINE_SOURCE": "merge_request_event"}
    assert not trust_of(request)[0]
    fork = {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "2", "CI_MERGE_REQUEST_PROJECT_ID": "1"}
    assert "fork" in trust_of({**request, **fork})[1]


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "CI_PIPELINE_SOURCE",
                "CI_COMMIT_REF_PROTECTED",
                "CI_MERGE_REQUEST_IID",
                "CI_MERGE_REQUEST_PROJECT_ID",
                "CI_MERGE_REQUEST_SOURCE_PROJECT_ID",
            ]
        ),
        st.sampled_from(["", "true", "True", "1", "2", "push", "web", "merge_request_event"]),
    )
)
def test_nothing_is_trusted_but_a_protected_ref(environment: dict[str, str]) -> None:
    if trust_of(environment)[0]:
        assert environment["CI_COMMIT_REF_PROTECTED"] == "true"
        assert environment["CI_PIPELINE_SOURCE"] not in ("", "merge_request_event")
        assert not environment.get("CI_MERGE_REQUEST_IID")


def test_the_base_is_what_gitlab_says() -> None:
    assert base_of({}) == ""
    assert base_of({"CI_COMMIT_BEFORE_SHA": NONE}) == ""
    assert base_of({"CI_COMMIT_BEFORE_SHA": "a" * 40}) == "a" * 40
    both = {"CI_COMMIT_BEFORE_SHA": NONE, "CI_MERGE_REQUEST_DIFF_BASE_SHA": "b" * 40}
    assert base_of(both) == "b" * 40


def test_settings_without_an_image_by_digest_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mvstack-ci.yaml"
    file.write_text("systems:\n  - {system: alps, staging: /s}\nimage: debian:12\n")
    with pytest.raises(InvalidInput) as caught:
        load_settings(file)
    assert f"{file}:3" in str(caught.value)
