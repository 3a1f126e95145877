"""Tuned settings: what may be tried, what may never be set, and how they reach plan and module."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lupa.lua54 import LuaRuntime
from ruamel.yaml import YAML

from mvstack.builders.spack.modules import content_of, parts_of
from mvstack.measure.tune import Request, Settings, Tuner, together
from mvstack.model.base import validated
from mvstack.model.load import load_policy, load_release, load_system
from mvstack.model.tuning import Tuned, load_tuning, table, tuned_file
from mvstack.model.yamlfile import parse_yaml
from mvstack.plan.easybuild import easybuild_graph
from mvstack.plan.make import make_plan
from mvstack.plan.spack import spack_graph
from mvstack.plan.types import Plan, plan_of
from mvstack.plan.usage import usage_of
from mvstack.render.partition import render
from mvstack.render.templates import labelled, template
from mvstack.support.errors import InvalidInput
from mvstack.support.home import DATA, VARIABLE
from mvstack.support.progress import Progress

POLICY, RELEASE = load_policy(), load_release()
MODULE = "mvapich/4.0-ucx"
BY_BUILDER = {"easybuild": easybuild_graph, "spack": spack_graph}
FOUND: dict[str, Any] = {
    "mpi": MODULE,
    "date": "2026-11-24",
    "machine": {"cpu": "2 x A", "cores": "64", "mpi": "MVAPICH", "transport": "ucx 1.18"},
    "measured": {"operations": "latency bw", "ranks": "2, 4", "bytes": "8:1048576"},
    "sets": {
        "UCX_RNDV_THRESH": {
            "value": "16384",
            "gain": {"value": 1.25, "low": 1.2, "high": 1.3},
            "why": "a message waits from this size on",
            "source": "UCX 1.13",
        }
    },
    "gain": {"value": 1.25, "low": 1.2, "high": 1.3},
    "by": {"latency on 2 ranks": {"value": 1.25, "low": 1.2, "high": 1.3}},
    "tried": 12,
    "rejected": [{"settings": {"UCX_TLS": "posix,self"}, "why": "it hangs"}],
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def put(site: Path, **changed: Any) -> Path:
    data = FOUND | changed
    file = tuned_file(site / "tuning", "azure-hbv4", "hpc", MODULE)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(template("tuned.yaml", data=data))
    return file


def planned(builder: str = "easybuild") -> Plan:
    system = load_system("azure-hbv4").model_copy(update={"builder": builder})
    return make_plan(system, "hpc", RELEASE, POLICY)


def contents(plan: Plan) -> dict[str, str]:
    graph = BY_BUILDER[plan.builder](plan, render(plan), DATA)
    return {node.name.upper(): node.content for node in graph.nodes.values()}


def test_without_a_file_nothing_is_tuned() -> None:
    assert all(build.tuning == {} for build in planned().mpi)
    assert all("tuning" not in row for row in planned().as_dict()["mpi"])


@pytest.mark.parametrize("builder", BY_BUILDER)
def test_what_is_tuned_builds_nothing_anew(site: Path, builder: str) -> None:
    plain = contents(planned(builder))
    put(site)
    plan = planned(builder)
    assert plan.mpi[0].tuning and contents(plan) == plain


def test_spack_writes_the_module_anew_where_a_value_changed(site: Path) -> None:
    def module() -> str:
        plan = planned("spack")
        (part,) = (one for one in parts_of(plan) if one.build)
        return content_of(plan, part, "/prefix", "")

    plain = module()
    put(site)
    tuned = module()
    row = FOUND["sets"]["UCX_RNDV_THRESH"]
    put(site, sets={"UCX_RNDV_THRESH": row | {"value": "65536"}})
    assert len({plain, tuned, module()}) == 3


def test_a_file_of_the_site_reaches_plan_module_and_help(site: Path) -> None:
    put(site)
    plan = planned()
    (build,) = plan.mpi
    assert build.module == MODULE
    assert build.tuning["UCX_RNDV_THRESH"]["value"] == "16384"
    why = build.tuning["UCX_RNDV_THRESH"]["why"]
    # a node of the partition may have another processor than that which was measured
    assert why.startswith(f"1.25 times as fast, measured on {FOUND['machine']['cpu']}, ")
    text = render(plan)[f"easyconfigs/{build.easyconfig}"]
    assert "UCX_RNDV_THRESH=16384" in usage_of(text)
    shown = dict(labelled("build", build=build, default=True))
    assert shown["tuned"].startswith("UCX_RNDV_THRESH=16384")
    assert plan_of(plan.as_dict()) == plan


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("UCX_POSIX_SEG_SIZE", "65536", "16 bits"),
        ("UCX_SYSV_SEG_SIZE", "1048576", "the same field"),
        ("UCX_POSIX_SEG_SIZE", "64K", "16 bits"),  # UCX takes units, and inf
        ("UCX_POSIX_SEG_SIZE", "1mb", "16 bits"),
        ("UCX_SYSV_SEG_SIZE", "inf", "the same field"),
        ("UCX_TLS", "tcp", "over TCP"),
        ("UCX_TLS", "self,tcp", "over TCP"),
        ("FI_PROVIDER", "shm", "does not return"),
    ],
)
def test_what_may_never_be_set_is_refused(site: Path, name: str, value: str, why: str) -> None:
    row = FOUND["sets"]["UCX_RNDV_THRESH"] | {"value": value}
    put(site, sets={name: row})
    with pytest.raises(InvalidInput, match="may never be set") as error:
        planned()
    assert why in error.value.problems[0].because
    assert error.value.problems[0].where.rpartition(":")[2].isdecimal()  # the line


@pytest.mark.parametrize("value", ["65535", "63k", "60000b"])
def test_what_is_below_the_least_that_is_forbidden_may_be_set(site: Path, value: str) -> None:
    put(site, sets={"UCX_POSIX_SEG_SIZE": FOUND["sets"]["UCX_RNDV_THRESH"] | {"value": value}})
    assert planned().mpi[0].tuning["UCX_POSIX_SEG_SIZE"]["value"] == value


def test_a_file_of_another_build_is_refused(site: Path) -> None:
    put(site, mpi="mvapich/4.1-ucx")
    with pytest.raises(InvalidInput, match="a file is of one build"):
        planned()


def test_the_policy_tries_nothing_forbidden() -> None:
    tuning = load_tuning()
    for row in tuning.tuning:
        for value in row.values:
            assert tuning.forbidden({row.variable: value}) == ""
    assert tuning.forbidden({"UCX_POSIX_SEG_SIZE": "60000"}) == ""
    text = (DATA / "environments" / "policy" / "tuning.yaml").read_text()
    bad = text.replace('values: ["16384", "32768", "60000"]', 'values: ["70000"]', 1)
    with pytest.raises(InvalidInput, match="among `never`"):
        validated(type(tuning), parse_yaml(bad, Path("tuning.yaml")))
    bad = text.replace('also: {UCX_TLS: "posix,self"}', "also: {UCX_TLS: cma}", 1)
    with pytest.raises(InvalidInput, match="no row has UCX_TLS=cma of `also`"):
        validated(type(tuning), parse_yaml(bad, Path("tuning.yaml")))


@pytest.mark.parametrize(
    ("device", "fabric", "there", "absent"),
    [
        ("ch4:ucx", "shm", "UCX_TLS", "MPIR_CVAR_CH4_CMA_ENABLE"),
        ("ch4:ucx", "infiniband", "UCX_RNDV_THRESH", "UCX_TLS"),  # nobody takes verbs away
        ("ch4:ofi", "slingshot-11", "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD", "UCX_RNDV_THRESH"),
    ],
)
def test_what_is_tried_fits_the_build(device: str, fabric: str, there: str, absent: str) -> None:
    row = planned().as_dict()["mpi"][0] | {"device": device, "fabric": fabric, "version": "4.0"}
    names = Request(["latency"], 2, 8, row, load_tuning()).tunables
    assert there in names and absent not in names


@pytest.mark.parametrize(
    ("ways", "there", "absent"),
    [
        ({"memory", "posix"}, "UCX_POSIX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE"),
        ({"network", "tcp"}, "UCX_TCP_RX_SEG_SIZE", "UCX_POSIX_SEG_SIZE"),
        ({"network", "rc_verbs"}, "UCX_ZCOPY_THRESH", "UCX_TCP_RX_SEG_SIZE"),
    ],
)
def test_what_cannot_act_where_messages_go_is_not_tried(
    ways: set[str], there: str, absent: str
) -> None:
    row = planned().as_dict()["mpi"][0] | {"device": "ch4:ucx", "fabric": "tcp", "version": "4.0"}
    rows = Request(["latency"], 2, 8, row, load_tuning()).tunables
    assert rows[there].tried(None, ways) and not rows[absent].tried(None, ways)
    assert not rows[absent].tried("1", ways)  # though somebody set it


def test_the_default_is_tried_where_another_value_is_set() -> None:
    (row,) = (one for one in load_tuning().tuning if one.variable == "UCX_TCP_NODELAY")
    ways = {"network", "tcp"}
    assert (row.tried(None, ways), row.tried("n", ways), row.tried("y", ways)) == ([], ["y"], [])


def test_what_gains_alone_is_put_together() -> None:
    values = {
        '{"A": "2"}': 1.2,
        '{"A": "1"}': 1.1,
        '{"B": "x"}': 1.3,
        '{"C": "y"}': 1.005,
        '{"D": "z"}': 0.0,
        '{"A": "1", "E": "w"}': 1.9,
        "{}": 1.0,
    }
    assert together(values) == {"A": "2", "B": "x"}
    assert together({}) == {}


def tuner_of(
    monkeypatch: pytest.MonkeyPatch,
    gains: Callable[[Settings, Settings, str], float],
    device: str = "ch4:ofi",
    **environment: str,
) -> Tuner:
    """One that measures what ``gains`` says of settings, those beside them, and the phase."""

    def measured(_: Tuner, settings: Settings, than: Settings, phase: str) -> dict[str, Any]:
        return {"latency on 2 ranks": np.full(100, gains(settings, than, phase))}

    monkeypatch.setattr(Tuner, "gains", measured)
    monkeypatch.setattr(Tuner, "_with", lambda self, settings: self.bench)
    tuner = object.__new__(Tuner)
    tuner.other, tuner.crowded, tuner.rejected = 4, False, {}
    row = planned().as_dict()["mpi"][0] | {"device": device, "fabric": "shm", "version": "4.0"}
    tuner.request = Request(["latency"], 2, 8, row, load_tuning())
    mpi = SimpleNamespace(name="x", environment=environment)
    tuner.bench = SimpleNamespace(mpi=mpi)  # type: ignore[assignment]
    return tuner


def test_what_gains_nothing_is_dropped_before_it_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worth = {"UCX_TLS": 1.3, "UCX_RNDV_THRESH": 1.0, "UCX_POSIX_SEG_SIZE": 1.001}
    phases: list[tuple[str, int]] = []

    def gains(settings: Settings, than: Settings, phase: str) -> float:
        phases.append((phase, len(settings)))
        return prod(worth[x] for x in settings) / prod(worth[x] for x in than)

    tuner = tuner_of(monkeypatch, gains, "ch4:ucx")
    candidate = {"UCX_TLS": "posix,self", "UCX_RNDV_THRESH": "4096", "UCX_POSIX_SEG_SIZE": "32768"}
    found = tuner.confirm([candidate], Progress(mode="quiet"))
    assert list(found["sets"]) == ["UCX_TLS"] and found["gain"]["value"] == pytest.approx(1.3)
    assert [x for x in phases if x[0] == "search"] == [("search", 3), ("search", 3), ("search", 2)]
    assert {count for phase, count in phases if phase == "confirm"} == {1}
    worth["UCX_TLS"] = 0.9  # what was tried more than once is told once
    assert not tuner.confirm([{"UCX_TLS": "posix,self"}] * 2, Progress(mode="quiet"))["sets"]
    assert [one["settings"] for one in tuner.rejected.values()] == [{"UCX_TLS": "posix,self"}]


def test_what_was_confirmed_stays_where_what_is_left_of_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between emulated machines two variables were 5 times as fast, one 2.27 (0.94 to 6.13)."""
    both = {"FI_OFI_RXM_BUFFER_SIZE": "8192", "FI_VERBS_INLINE_SIZE": "64"}

    def gains(settings: Settings, than: Settings, phase: str) -> float:
        if than == {"FI_VERBS_INLINE_SIZE": "64"} and phase == "one":
            return 1.0  # the other gains nothing beside it
        return 2.0 if settings == both else 1.0

    found = tuner_of(monkeypatch, gains).confirm([both], Progress(mode="quiet"))
    assert list(found["sets"]) == [*both]


@pytest.mark.parametrize("planted", ["FI_VERBS_INLINE_SIZE", "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD"])
def test_of_two_variables_that_mend_the_same_what_somebody_set_is_kept(
    monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    both = {"FI_VERBS_INLINE_SIZE": "64", "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "-1"}

    def gains(settings: Settings, than: Settings, phase: str) -> float:
        return 1.0 if than else 3.0

    tuner = tuner_of(monkeypatch, gains, **{planted: "64"})
    assert list(tuner.confirm([both], Progress(mode="quiet"))["sets"]) == [planted]


@pytest.mark.filterwarnings("error")
def test_a_resample_of_rounds_that_were_not_measured_is_left_out_without_a_word() -> None:
    """Of one operation the whole had nothing to average there, and numpy said so on the screen."""
    tuner = object.__new__(Tuner)
    tuner.other, tuner.crowded, row = 4, False, {"module": "x"}
    tuner.request = Request(["put"], 2, 8, row, load_tuning())
    drawn = np.array([1.5, np.nan, 1.4, 1.6])
    assert tuner.whole({"put on 2 ranks": drawn}).value == pytest.approx(1.5)


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@given(TEXT, TEXT)
def test_what_is_written_is_read_back_whatever_it_holds(value: str, why: str) -> None:
    row = FOUND["sets"]["UCX_RNDV_THRESH"] | {"value": value, "why": why}
    rejected = [{"settings": {"UCX_TLS": value}, "why": why}]
    data = FOUND | {"sets": {"UCX_TLS": row}, "rejected": rejected}
    text = template("tuned.yaml", data=data)
    assert validated(Tuned, parse_yaml(text, Path("x.yaml"))).model_dump() == data
    nothing = FOUND | {"sets": {}, "rejected": []}
    assert YAML(typ="safe").load(template("tuned.yaml", data=nothing))["sets"] == {}


LUA = LuaRuntime(unpack_returned_tuples=True, register_eval=False, register_builtins=False)
LOAD = LUA.eval(
    """
function(text, doing, environment, record)
  local env = {os = {getenv = function(name) return environment[name] end}, setenv = record}
  env.mode = function() return doing end
  env.myFileName = function() return "/tree/modules/Core/mvapich/4.0-ucx.lua" end
  assert(load(text, "module", "t", env))()
end
"""
)


TABLE = "MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE"


def test_a_table_lies_in_the_tree_by_its_content_wherever_the_tree_stands(site: Path) -> None:
    own = site / "tuning" / "collectives" / "ours.json"
    row = FOUND["sets"]["UCX_RNDV_THRESH"] | {"value": "collectives/ours.json"}
    put(site, sets={TABLE: row})
    with pytest.raises(InvalidInput, match=r"collectives/ours\.json: no such file"):
        planned()
    own.parent.mkdir()
    values = []
    for text in ("{}\n", '{"a": {}}\n'):
        own.write_text(text)
        plan = planned()
        setting = plan.mpi[0].tuning[TABLE]
        assert render(plan)[setting["value"]] == text
        found: dict[str, str] = {}
        module = template("tuned.lua", build=plan.mpi[0])
        LOAD(module, "load", LUA.table_from({}), found.__setitem__)
        assert found[TABLE] == f"/tree/rendered/{setting['value']}"
        assert plan.tree not in module  # a cache's module serves every tree
        values.append(setting["value"])
    assert values[0] != values[1]


def test_every_table_that_is_tried_is_there_and_names_what_mvapich_reads() -> None:
    values = [value for row in load_tuning().tuning for value in row.values if table(value)]
    assert values
    for value in values:
        path = table(value)
        assert path and path.is_file()
        words = re.findall(r'"algorithm=(\w+)"', path.read_text())
        # MVAPICH 4.0, posix_init.c, create_container: for others, MPIR_Bcast_impl among them, the
        # broadcast does nothing, unsaid
        assert {re.sub(r"_(bcast|barrier|allreduce|reduce)_", "_X_", word) for word in words} == {
            "MPIDI_POSIX_mpi_X_release_gather"
        }


@pytest.mark.parametrize(
    ("doing", "environment", "set_"),
    [
        ("load", {}, True),
        ("load", {"UCX_TLS": 'a"b'}, True),
        ("load", {"MVAPICH_STACK_UNTUNED": "1"}, False),
        ("load", {"MVAPICH_STACK_UNTUNED": "0"}, True),
        ("unload", {"MVAPICH_STACK_TUNED": MODULE}, True),
        ("unload", {"MVAPICH_STACK_TUNED": MODULE, "MVAPICH_STACK_UNTUNED": "1"}, True),
        ("unload", {}, False),  # the user's own values stay
    ],
)
def test_the_module_sets_them_unless_told_not_to(
    doing: str, environment: dict[str, str], set_: bool
) -> None:
    build = replace(planned().mpi[0], tuning={"UCX_TLS": {"value": 'a"b', "why": "", "source": ""}})
    found: dict[str, str] = {}
    LOAD(template("tuned.lua", build=build), doing, LUA.table_from(environment), found.__setitem__)
    assert found == ({"MVAPICH_STACK_TUNED": MODULE, "UCX_TLS": 'a"b'} if set_ else {})


@pytest.mark.parametrize("doing", ["load", "unload"])
@pytest.mark.parametrize("fabric_sets_it", [False, True])
def test_what_the_user_has_set_stays_unless_the_fabric_needs_it(
    doing: str, fabric_sets_it: bool
) -> None:
    row = {"value": "posix,self", "why": "", "source": ""}
    sets = {"environment": {"UCX_TLS": row} if fabric_sets_it else {}}
    build = replace(planned().mpi[0], tuning={"UCX_TLS": row}, **sets)
    environment = {"UCX_TLS": "tcp,self", "MVAPICH_STACK_TUNED": MODULE}
    found: dict[str, str] = {}
    LOAD(template("tuned.lua", build=build), doing, LUA.table_from(environment), found.__setitem__)
    assert found.keys() - {"MVAPICH_STACK_TUNED"} == ({"UCX_TLS"} if fabric_sets_it else set())
