"""Pipelines of 50 systems of 200 packages keep GitLab's limits and lose nothing."""

import io
import zipfile

import pytest
from ci_world import names, world
from ruamel.yaml import YAML

from mvstack.ci.changes import Todo, todo
from mvstack.ci.graph import Graph
from mvstack.ci.pipeline import MAIN, Context, Pipelines, Target, pipelines
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy

SYSTEMS, PACKAGES = 50, 200


def settings() -> Settings:
    sites = [
        Site(system=f"system{number:02}", staging="/scratch/ci", root="/apps")
        for number in range(SYSTEMS)
    ]
    return Settings(systems=sites, push="/apps/cache", caches=["/apps/cache"])


def todos(old: dict[str, Graph], new: dict[str, Graph]) -> list[Todo]:
    there = {node.content for graph in old.values() for node in graph.nodes.values()}
    validate = ci_policy().validation
    return [todo(old.get(name), graph, there, validate) for name, graph in new.items()]


def made(found: list[Todo]) -> Pipelines:
    project = settings()
    sites = {site.system: site for site in project.systems}
    targets = [Target(one, sites[one.name.partition("/")[0]], one.name) for one in found]
    return pipelines(targets, Context(project, trusted=True))


@pytest.fixture(scope="module")
def before() -> dict[str, Graph]:
    return world(SYSTEMS, PACKAGES)


@pytest.fixture(scope="module")
def everything(before: dict[str, Graph]) -> Pipelines:
    return made(todos({}, before))


def test_the_made_up_partitions_are_what_they_are_said_to_be(before):
    assert len(before) == SYSTEMS
    for number, graph in enumerate(before.values()):
        assert len(graph.nodes) == PACKAGES
        mpis = [key for key, node in graph.nodes.items() if node.kind == "mpi"]
        assert len(mpis) == 1
        over = sum(mpis[0] in graph.closure([key]) for key in graph.nodes) - 1
        assert over == 0.6 * PACKAGES
        assert names(number, PACKAGES)["tops"]
        seen: set[str] = set()
        for key, node in graph.nodes.items():
            assert set(node.needs) <= seen
            seen.add(key)


def test_everything_is_built_once(before, everything):
    assert set(everything.jobs) == set(before)
    for name, jobs in everything.jobs.items():
        built = [key for job in jobs for key in job.keys]
        assert sorted(built) == sorted(before[name].nodes)


def test_every_file_keeps_gitlabs_limits(everything):
    limits = ci_policy().limits
    assert len(everything.files) == SYSTEMS + 1
    for text in everything.files.values():
        assert len(text.encode()) <= limits.child_pipeline_bytes.kept
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, text in everything.files.items():
            writer.writestr(name, text)
    # the artifact that all children are read from
    assert len(archive.getvalue()) <= limits.child_pipeline_bytes.value


def test_the_jobs_in_the_yaml_keep_gitlabs_limits(everything):
    limits = ci_policy().limits
    largest = max(everything.jobs, key=lambda name: len(everything.jobs[name]))
    for file in (MAIN, f"{largest.replace('/', '-')}.yml"):
        data = YAML(typ="safe", pure=True).load(everything.files[file])
        words = {"stages", "workflow", "default", "variables", "include", "image"}
        jobs = {
            name: job
            for name, job in data.items()
            if name not in words and not name.startswith(".")
        }
        assert 0 < len(jobs) <= limits.jobs_per_pipeline.kept
        assert all(len(name) <= 255 for name in jobs)
        for job in jobs.values():
            needs = job.get("needs", [])
            assert len(needs) <= limits.needs_per_job.kept
            ours = [one for one in needs if isinstance(one, str) or "pipeline" not in one]
            assert all((one if isinstance(one, str) else one["job"]) in jobs for one in ours)
    assert len(everything.jobs[largest]) == sum(name.startswith("build:") for name in jobs)


def test_all_jobs_keep_gitlabs_limits(everything):
    limits = ci_policy().limits
    for jobs in everything.jobs.values():
        assert len(jobs) < limits.jobs_per_pipeline.kept
        assert max(len(job.needs) for job in jobs) <= limits.needs_per_job.kept
        assert max(len(job.name) for job in jobs) <= 255


def test_another_mpi_builds_what_stands_on_it_and_nothing_else(before):
    changed = [(n, name) for n in range(SYSTEMS) for name in names(n, PACKAGES)["mpi"]]
    found = todos(before, world(SYSTEMS, PACKAGES, changed))
    assert [len(one.build) for one in found] == [0.6 * PACKAGES + 1] * SYSTEMS
    assert all([origin.node.kind for origin in one.origins] == ["mpi"] for one in found)
    result = made(found)
    assert sum(len(job.keys) for jobs in result.jobs.values() for job in jobs) == sum(
        len(one.build) for one in found
    )


def test_a_leaf_package_on_all_systems_is_one_job_each(before):
    changed = [(number, names(number, PACKAGES)["tops"][-1]) for number in range(SYSTEMS)]
    result = made(todos(before, world(SYSTEMS, PACKAGES, changed)))
    assert [len(jobs) for jobs in result.jobs.values()] == [1] * SYSTEMS


def test_one_package_on_one_system_is_one_file_of_one_job(before):
    changed = [(7, names(7, PACKAGES)["tops"][0])]
    result = made(todos(before, world(SYSTEMS, PACKAGES, changed)))
    assert list(result.jobs) == ["system07/cpu"]
    assert [len(job.keys) for job in result.jobs["system07/cpu"]] == [1]
    assert list(result.files) == [MAIN]


def test_documentation_builds_nothing(before):
    result = made(todos(before, world(SYSTEMS, PACKAGES)))
    assert result.jobs == {}
    assert list(result.files) == [MAIN]
