"""What users have, what may be signed, what is compared with: nothing is forgotten or let in."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mvstack.cache.place import place
from mvstack.ci.changes import todo
from mvstack.ci.deployed import note, record_of
from mvstack.ci.generate import deployed_state
from mvstack.ci.graph import Graph, read_graphs
from mvstack.ci.handover import caches_below
from mvstack.ci.sites import has_commit, pinned, same_pin
from mvstack.ci.steps import not_committed
from mvstack.diff.sides import Side
from mvstack.errors import InvalidInput, Refused
from mvstack.model.ci import Settings, Site
from mvstack.model.ci_policy import ci_policy
from mvstack.model.load import REPOSITORY

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def graph() -> Graph:
    side = Side("the working tree", REPOSITORY, REPOSITORY / "environments" / "rendered")
    return read_graphs(side)["qemu-debian12/mpich"]


def test_what_is_not_deployed_is_gone_through_again(graph: Graph) -> None:
    cached = [node.content for node in graph.nodes.values()]
    validate = ci_policy().validation

    def touched(deployed: str | None, finish: bool = True, have: list[str] = cached) -> bool:
        return todo(graph, graph, have, validate, finish=finish, deployed=deployed).touched

    assert not touched(graph.state)
    assert touched("")
    assert touched("another state")
    assert not touched(None), "nothing is ever deployed here"
    assert not touched("another state", finish=False), "a merge request deploys nothing"
    assert touched(graph.state, have=cached[1:])


def test_the_state_is_of_what_is_built_and_published(graph: Graph) -> None:
    image = {**graph.aspects, "image": "other"}
    modules = {**graph.aspects, "modules": "other"}
    assert replace(graph, aspects=image).state == graph.state
    assert replace(graph, aspects=modules).state != graph.state
    assert replace(graph, nodes=dict(list(graph.nodes.items())[1:])).state != graph.state


def test_the_record_of_a_deployment_is_found_again(tmp_path: Path) -> None:
    site = Site(system="systems/mini.yaml", staging="/s", root="/apps")
    settings = Settings(systems=[site], push=str(tmp_path / "cache"))
    name = "systems/mini.yaml/cpu"
    assert deployed_state(settings, site, name) == ""
    note(place(str(tmp_path / "cache")), name, "abc", "/apps")
    assert deployed_state(settings, site, name) == "abc"
    (tmp_path / "cache" / record_of(name)).write_text("[]")
    assert deployed_state(settings, site, name) == ""
    assert deployed_state(settings, replace_root(site), name) is None


def replace_root(site: Site) -> Site:
    return site.model_copy(update={"root": None})


def test_a_link_in_a_handover_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "handover" / "build-x"
    (cache / "easybuild").mkdir(parents=True)
    assert caches_below([tmp_path / "handover"]) == [cache]
    (cache / "easybuild" / "index.json").symlink_to("/etc/passwd")
    with pytest.raises(Refused) as caught:
        caches_below([tmp_path / "handover"])
    assert "index.json" in str(caught.value)


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


def test_a_pin_that_cannot_be_read_is_an_error_and_no_change(tmp_path: Path) -> None:
    file = tmp_path / ".gitlab-ci.yml"
    file.write_text("include:\n  - inputs: {stack_commit: $STACK}\n")
    with pytest.raises(InvalidInput):
        same_pin(tmp_path, COMMIT)
    file.write_text(
        f"# stack_commit: {'f' * 40}\n"
        f"include:\n  - ref: &stack-pin {COMMIT}\n    inputs: {{stack_commit: *stack-pin}}\n"
    )
    assert pinned(tmp_path) == COMMIT
    same_pin(tmp_path, COMMIT)
    same_pin(tmp_path, "")


def test_a_commit_that_a_force_push_took_away_is_seen(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert not has_commit(tmp_path, COMMIT)
