"""What a centre's runners ask of pipelines: images, containers, schedulers, several users."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from gitlab import schema

from mvstack.ci.changes import todo
from mvstack.ci.graph import Graph, read_graphs
from mvstack.ci.pipeline import Context, Target, pipelines, scheduled
from mvstack.ci.sites import check_project, refuse_dead_images
from mvstack.cli.image import app
from mvstack.diff.sides import Side
from mvstack.image.flow import Asked
from mvstack.image.publish import Target as Published
from mvstack.image.publish import _fits_cloud
from mvstack.model.ci import Images, Settings, Site, Variables, load_settings
from mvstack.model.ci_policy import ci_policy
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA

DIGEST = "@sha256:" + "0123456789abcdef" * 4
IMAGES: dict[str, Any] = {"folder": "/srv/building", "vulnerabilities": "unknown"}
PLACES = {"to": "/srv/images", "settings": "packer.json", "regions": ["eu-north-1"]}


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return read_graphs(Side("the working tree", DATA, DATA / "environments" / "rendered"))


def site(name: str, **more: Any) -> Site:
    system = name.partition("/")[0]
    return Site(system=system, staging="/shared/staging", root="/apps", **more)


def made(graphs: dict[str, Graph], sites: dict[str, Site], **more: Any) -> dict[str, Any]:
    """The trusted pipelines by partition, as GitLab reads them; all is new."""
    settings = Settings(systems=list(sites.values()), push="/cache", trust=["site.asc"], **more)
    validate = ci_policy().validation
    targets = [Target(todo(None, graphs[one], (), validate), sites[one], one) for one in sites]
    found = pipelines(targets, Context(settings, trusted=True, url="u", commit="c")).files
    assert all(not schema.errors(text) for text in found.values())
    slugs = {re.sub(r"[^a-z0-9.]+", "-", one): one for one in sites}
    if len(sites) == 1:
        slugs = {"pipeline": next(iter(sites))}
    return {slugs[name[:-4]]: yaml.safe_load(found[name]) for name in found if name[:-4] in slugs}


IMAGED = ("qemu-debian12/mpich", "aws-hpc7a/hpc", "azure-hbv3/hpc", "azure-ndv5/gpu")


@pytest.mark.parametrize("name", IMAGED)
def test_jobs_of_images_say_all_that_their_commands_ask_for(
    graphs: dict[str, Graph], name: str
) -> None:
    """Read by the commands' own parser, and held to the cloud as `image publish` does."""
    jobs = made(graphs, {name: site(name, images=Images(**IMAGES, **PLACES))})[name]
    (line,) = [one for one in jobs["image:publish"]["script"] if "image publish" in one]
    given = parsed(line)
    target = Published(given["to"], given["settings"], given["region"] or (), given["share"] or ())
    _, image = Asked(name).plan("publish")
    _fits_cloud(image, target)
    assert given["unknown"], "nobody looked for vulnerabilities, and publishing refuses that"
    assert given["images"] == Path("/srv/building")
    if image.cloud != "qemu":
        assert given["settings"] == Path("packer.json") and given["region"] == ["eu-north-1"]
    (line,) = [one for one in jobs["image:build"]["script"] if "image build" in one]
    assert parsed(line)["settings"] == target.site
    (line,) = [one for one in jobs["image:test"]["script"] if "image test" in one]
    assert bool(parsed(line)["host"]) == (image.cloud != "qemu")
    assert jobs["image:publish"]["needs"] == ["image:test"], "publish refuses what was not tested"
    for job in ("image:build", "image:publish"):
        assert "gpg" in jobs[job]["script"][0], "packages and images are believed by the site's key"


@pytest.mark.parametrize("audience", [None, "api://x"])
@pytest.mark.parametrize("name", [one for one in IMAGED if not one.startswith("qemu")])
def test_with_a_budget_the_pipeline_starts_the_machine_that_tests(
    graphs: dict[str, Graph], name: str, audience: str | None
) -> None:
    images = Images(**IMAGES, **PLACES, budget=12.5, audience=audience)
    job = made(graphs, {name: site(name, images=images)})[name]["image:test"]
    assert "when" not in job["rules"][0], "it waits for nobody"
    given = parsed(job["script"][-1])
    assert job["script"][-1].split()[2] == "boot-test"
    assert (given["budget"], given["settings"]) == (12.5, Path("packer.json"))
    assert ("MVSTACK_GNUPGHOME" in "".join(job["script"])) and len(job["script"]) == 2


def parsed(line: str) -> dict[str, Any]:
    words = [one for one in shlex.split(line) if "=" not in one or one.startswith("-")]
    assert words[:2] == ["mvstack", "image"]
    command: Any = typer.main.get_command(app)
    command = command.commands[words[2]]
    return dict(command.make_context(words[2], words[3:]).params)


def test_an_image_is_begun_after_the_checks_and_published_after_its_test(
    graphs: dict[str, Graph],
) -> None:
    name = "qemu-debian12/mpich"
    jobs = made(graphs, {name: site(name, images=Images(**IMAGES, **PLACES))})[name]
    assert jobs["image:build"]["needs"] == ["sign"]
    assert jobs["image:test"]["needs"] == ["image:build"]
    assert jobs["image:publish"]["needs"] == ["image:test"]
    settings = Settings(systems=[site(name)], push="/cache")
    one = site(name, images=Images(**IMAGES, **PLACES))
    every = [node.content for node in graphs[name].nodes.values()]
    again = Target(todo(None, graphs[name], every, ci_policy().validation), one, name)
    text = pipelines([again], Context(settings, trusted=True)).files["pipeline.yml"]
    assert yaml.safe_load(text)["image:build"]["needs"] == ["validate"], "nothing is built"


@pytest.mark.parametrize("have", [True, False])
def test_an_image_alone_needs_only_jobs_that_there_are(
    graphs: dict[str, Graph], have: bool
) -> None:
    """With nothing in a cache it needed a job `sign` that an image alone has not."""
    name = "qemu-debian12/mpich"
    one = site(name, images=Images(**IMAGES, **PLACES))
    new = graphs[name]
    old = replace(new, aspects={**new.aspects, "image": "as it was"})
    cached = [node.content for node in new.nodes.values()] if have else []
    found = todo(old, new, cached, ci_policy().validation)
    assert found.image and not found.staged and not found.build
    context = Context(Settings(systems=[one], push="/cache"), trusted=True)
    jobs = yaml.safe_load(pipelines([Target(found, one, name)], context).files["pipeline.yml"])
    needed = [
        need for job in jobs.values() if isinstance(job, dict) for need in job.get("needs", [])
    ]
    assert needed and set(needed) <= set(jobs)


@pytest.mark.parametrize(
    ("cloud", "places", "lacking"),
    [
        ("qemu", {}, "to"),
        ("aws", {}, "settings"),
        ("azure", {}, "settings"),
        ("aws", {"settings": "empty.json"}, "aws_region"),
        ("aws", {"settings": "packer.json"}, ""),
        ("azure", {"settings": "empty.json"}, ""),
        ("qemu", {"to": "/srv/images"}, ""),
        ("", {}, ""),
    ],
)
def test_an_image_that_could_never_be_published_is_refused_at_once(
    tmp_path: Path, cloud: str, places: dict[str, Any], lacking: str
) -> None:
    (tmp_path / "packer.json").write_text('{"aws_region": "eu-north-1"}')
    (tmp_path / "empty.json").write_text("{}")
    one = site("x", images=Images(**IMAGES, **places))
    if not lacking:
        refuse_dead_images(one, "x/y", cloud, tmp_path)
        return
    with pytest.raises(InvalidInput, match=f"{lacking} is missing"):
        refuse_dead_images(one, "x/y", cloud, tmp_path)


def test_an_image_without_a_place_is_told_with_all_else_that_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "mvstack-ci.yaml"
    text = "systems: [{{system: qemu-debian12, staging: /s, images: {{folder: /i, {0}}}}}]"
    file.write_text(text.format("vulnerabilities: unknown"))
    with pytest.raises(InvalidInput, match="to is missing for the image of qemu"):
        check_project(tmp_path, file, load_settings(file))
    file.write_text(text.format("to: /o, vulnerabilities: unknown"))
    check_project(tmp_path, file, load_settings(file))


@pytest.mark.parametrize("name", ["aws-hpc7a/hpc", "azure-hbv3/hpc"])
def test_clouds_are_entered_by_a_token_where_an_audience_is_named(
    graphs: dict[str, Graph], name: str
) -> None:
    without = made(graphs, {name: site(name, images=Images(**IMAGES, **PLACES))})[name]
    assert "id_tokens" not in str(without) and "ID_TOKEN" not in str(without)
    images = Images(**IMAGES, **PLACES, audience="https://gitlab.example.org")
    jobs = made(graphs, {name: site(name, images=images)})[name]
    wanted = {"MVSTACK_ID_TOKEN": {"aud": "https://gitlab.example.org"}}
    assert jobs[".image"]["id_tokens"] == wanted
    for job in ("image:build", "image:publish"):
        assert jobs[job]["extends"] == ".image"
        script = "\n".join(jobs[job]["script"])
        assert script.index("MVSTACK_ID_TOKEN") < script.index("mvstack image")
    assert not [one for one in jobs if one != ".image" and "id_tokens" in jobs[one]]


def test_a_pipeline_ends_without_an_approval(graphs: dict[str, Graph]) -> None:
    """`strategy: depend` waits for a manual job that may not fail: the parents ran for days."""
    name = "qemu-debian12/mpich"
    jobs = made(graphs, {name: site(name, images=Images(**IMAGES, **PLACES))})[name]
    manual = {
        one: rule
        for one, job in jobs.items()
        if isinstance(job, dict)
        for rule in job.get("rules", [])
        if isinstance(rule, dict) and rule.get("when") == "manual"
    }
    assert set(manual) == {"deploy", "image:build", "image:publish"}
    assert all(rule["allow_failure"] is True for rule in manual.values())


def test_each_system_has_an_image_of_its_own(graphs: dict[str, Graph]) -> None:
    own, other = "qemu-debian12/mpich", "azure-hbv4/hpc"
    image = "registry.example.org/alma8" + DIGEST
    sites = {own: site(own), other: site(other, image=image)}
    found = made(graphs, sites)
    assert found[other]["default"]["image"] == image
    assert found[own]["default"]["image"] == ci_policy().image.name
    policy = ci_policy().validation
    targets = [Target(todo(None, graphs[one], (), policy), sites[one], one) for one in sites]
    context = Context(Settings(systems=list(sites.values()), push="/c"), trusted=True)
    (text,) = scheduled(targets, policy.nightly, context).files.values()
    assert not schema.errors(text)
    jobs = yaml.safe_load(text)
    assert jobs[f"validate:{other}"]["image"] == image
    assert "image" not in jobs[f"validate:{own}"]


def test_containers_keep_what_jobs_set_up_and_fetch(graphs: dict[str, Graph]) -> None:
    name = "azure-hbv4/hpc"
    jobs = made(graphs, {name: site(name, image="alma8" + DIGEST)})[name]
    clones = jobs["default"]["cache"]
    assert clones["policy"] == "pull" and clones["paths"] == [".mvstack-cache/clones/"]
    assert jobs["stage"]["cache"] == {**clones, "policy": "pull-push"}
    sources = {}
    for one, job in jobs.items():
        if one.startswith("build:"):
            assert job["cache"][0] == clones
            sources[one] = job["cache"][1]["key"]
    assert sources and len(set(sources.values())) == len(sources)
    assert DIGEST[-12:] in clones["key"], "an image of another Python has a cache of its own"
    without = made(graphs, {name: site(name)})[name]
    assert "cache" not in without["default"] and "cache" not in without["stage"]


def test_what_a_scheduler_is_asked_for_is_said_for_each_system(graphs: dict[str, Graph]) -> None:
    asked = {kind: {"SCHEDULER_PARAMETERS": f"-p {kind}"} for kind in ("build", "cluster")}
    own, other = "qemu-debian12/mpich", "azure-hbv4/hpc"
    found = made(graphs, {own: site(own, variables=Variables(**asked)), other: site(other)})
    jobs = found[own]
    assert jobs[".build"]["variables"] == asked["build"]
    for one in ("stage", "validate", "report", "clean"):
        assert jobs[one]["variables"] == asked["cluster"], one
    assert "variables" not in jobs["deploy"] and "variables" not in jobs["sign"]
    assert "SCHEDULER_PARAMETERS" not in str(found[other])


def test_this_repositorys_own_jobs_keep_what_is_installed(graphs: dict[str, Graph]) -> None:
    own = yaml.safe_load((DATA / ".gitlab-ci.yml").read_text())
    assert own["variables"]["GIT_CLEAN_FLAGS"] == "-ffdx -e .venv/"
    name = "qemu-debian12/mpich"
    settings = Settings(systems=[site(name)], push="/c")
    target = Target(todo(None, graphs[name], (), ci_policy().validation), site(name), name)
    for url, flags in (("", "-ffdx -e .venv/"), ("https://example.org/stack.git", None)):
        context = Context(settings, trusted=True, url=url)
        text = pipelines([target], context).files["pipeline.yml"]
        assert yaml.safe_load(text)["variables"].get("GIT_CLEAN_FLAGS") == flags
