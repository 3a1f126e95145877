"""From plan to files: the same plan gives the same bytes, and others' tools can read them."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import tempfile
import tokenize
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.model.system import External
from mvstack.plan import easyconfigs
from mvstack.plan.easybuild import easybuild_graph
from mvstack.plan.make import make_plan, split_name
from mvstack.plan.types import Given, Plan
from mvstack.render.partition import _quoted, mpi_easyconfig, render, stale, stray, write
from mvstack.support.errors import Refused
from mvstack.support.home import DATA

RELEASE, POLICY = load_release(), load_policy()
RENDERED = Path(__file__).parents[2] / "environments" / "rendered"
PLANS = {
    f"{name}/{part}": make_plan(system, part, RELEASE, POLICY)
    for name in system_names()
    if (RENDERED / name).is_dir()  # all others are rendered once, in test_systems.py
    for system in [load_system(name)]
    for part in system.partitions
}
EASYBUILD = [name for name, plan in PLANS.items() if plan.builder == "easybuild"]


def values_of(text: str) -> dict[str, Any]:
    """An easyconfig's values, by EasyBuild's own parser."""
    from easybuild.framework.easyconfig.parser import EasyConfigParser

    found: dict[str, Any] = EasyConfigParser(rawcontent=text).get_config_dict()
    return found


@pytest.fixture(params=sorted(PLANS))
def plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


def test_the_same_plan_gives_the_same_bytes(plan: Plan) -> None:
    again = make_plan(load_system(plan.system), plan.partition, load_release(), load_policy())
    assert render(plan) == render(again)


def test_every_file_says_first_that_it_is_generated(plan: Plan) -> None:
    for name, text in render(plan).items():
        # JSON has no comments: there it is the first key
        first = text.splitlines()[1 if name.endswith(".json") else 0]
        assert "enerated by mvstack from " in first and "Do not edit" in first, name
        assert plan.system in first and plan.release in first, name
        assert text.endswith("\n") and "\r" not in text, name


def test_plan_json_is_the_plan(plan: Plan) -> None:
    found = json.loads(render(plan)["plan.json"])
    assert found.pop("generated")
    assert found == json.loads(json.dumps(plan.as_dict()))


@pytest.mark.parametrize("name", EASYBUILD)
def test_easybuild_reads_the_mpis_easyconfig_as_the_partition_wants_it(name: str) -> None:
    plan = PLANS[name]
    files = render(plan)
    for build in plan.mpi:
        values = values_of(files[f"easyconfigs/{build.easyconfig}"])
        assert (values["name"], values["version"]) == (build.software, build.version)
        for key, value in build.parameters.items():
            assert values[key] == value, key
        assert values["pmi"] == build.pmi
        environment = {key: one["value"] for key, one in build.environment.items()}
        assert values.get("modextravars", {}) == environment
        assert build.launch.split()[0] in values["usage"]


@pytest.mark.parametrize("name", EASYBUILD)
def test_the_toolchain_stands_on_the_mpi_of_the_plan(name: str) -> None:
    plan = PLANS[name]
    for build, (file, text) in zip(
        plan.mpi,
        [(f, t) for f, t in render(plan).items() if "gmvapich" in f or "gmpich" in f],
        strict=True,
    ):
        needs = values_of(text)["dependencies"]
        assert ("GCC", plan.compiler["version"]) in needs, file
        assert needs[-1][:2] == (build.software, build.version)


@pytest.mark.parametrize("name", EASYBUILD)
def test_the_easystack_names_files_that_are_there_in_order(name: str) -> None:
    files = render(PLANS[name])
    listed = YAML(typ="safe").load(files["easystack.yaml"])["easyconfigs"]
    names = [next(iter(one)) if isinstance(one, dict) else one for one in listed]
    mpi = PLANS[name].mpi[0].easyconfig.removesuffix(".eb")
    assert any(one.startswith(mpi) for one in names)
    packages = [one.easyconfig.removesuffix(".eb") for one in PLANS[name].packages]
    assert [one.removesuffix(".eb") for one in names][-len(packages) :] == packages


def accepting(reason: str) -> Plan:
    """A plan whose MPI is built from bytes that a person accepted for ``reason``."""
    plan = PLANS["azure-hbv4/hpc"]
    build = dataclasses.replace(plan.mpi[0], not_upstream=reason, accepted_sha256=["ab" * 32])
    return dataclasses.replace(plan, mpi=[build])


def test_accepted_bytes_reach_the_easyconfig() -> None:
    plan = accepting("site patch 12")
    text = mpi_easyconfig(plan, plan.mpi[0])
    values = values_of(text)
    assert values["checksums"][0] == "ab" * 32  # those of the patches follow
    assert "not upstream's bytes: site patch 12" in values["usage"]
    assert "# not upstream's bytes: site patch 12" in text


def test_the_help_of_a_package_says_that_its_bytes_were_accepted() -> None:
    plan = PLANS["azure-hbv4/hpc"]
    first, *rest = plan.packages
    taken = dataclasses.replace(first, not_upstream="site patch 12", accepted_sha256=["ab" * 32])
    files = render(dataclasses.replace(plan, packages=[taken, *rest]))
    text = files[f"easyconfigs/{first.easyconfig}"]
    assert "not upstream's bytes: site patch 12" in values_of(text)["usage"]


@pytest.mark.parametrize("name", EASYBUILD)
def test_accepted_bytes_are_those_of_the_source_and_patches_keep_their_hashes(name: str) -> None:
    plan = PLANS[name]
    build = dataclasses.replace(plan.mpi[0], not_upstream="a site's", accepted_sha256=["ab" * 32])
    own = values_of(easyconfigs.find(build.easyconfig, name).read_text())
    values = values_of(mpi_easyconfig(plan, build))
    assert values["checksums"] == ["ab" * 32, *own["checksums"][1:]]
    assert len(values["checksums"]) == 1 + len(own.get("patches", []))


ODD = (
    *('"""', "'''", "\\", '\\"""', '""""', 'ends with "', "\\N{DASH}", "%(name)s", "100 %"),
    *("\r\n", "\r", "\x0c", "\0", "\u2028", "{{ x }}", "\\u0041", "#", "import os", "a\nimport os"),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60) | st.sampled_from(ODD)


@given(TEXT)
def test_any_text_is_quoted_to_itself(text: str) -> None:
    quoted = _quoted(text)
    found = ast.literal_eval(quoted)
    assert found.removeprefix("\n").removesuffix("\n") == text


@given(TEXT)
def test_a_reason_cannot_leave_the_text_that_it_stands_in(reason: str) -> None:
    plan = accepting(reason)
    text = mpi_easyconfig(plan, plan.mpi[0])
    names = {
        target.id
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert names == NAMES
    comments = [
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and "not upstream's bytes" in token.string
    ]
    assert len(comments) == 1


def _names() -> set[str]:
    plan = accepting("plain words")
    return {
        target.id
        for node in ast.parse(mpi_easyconfig(plan, plan.mpi[0])).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


NAMES = _names()


def test_a_plan_without_an_easyconfig_is_refused_with_what_there_is() -> None:
    plan = PLANS["azure-hbv4/hpc"]
    build = dataclasses.replace(plan.mpi[0], easyconfig="MVAPICH-9.9-GCC-12.2.0-ucx.eb")
    with pytest.raises(Refused) as caught:
        mpi_easyconfig(plan, build)
    problem = caught.value.problems[0]
    assert (
        problem.nearest.startswith("MVAPICH-")
        and "MVAPICH-4.0-GCC-12.2.0-ucx.eb" in problem.allowed
    )
    assert problem.where == "azure-hbv4/hpc" and problem.todo


# --- files on disk -------------------------------------------------------------------------------

NAME = st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4}){0,2}\.txt", fullmatch=True)


@given(
    before=st.dictionaries(NAME, st.text("ab\n", max_size=5), max_size=4),
    after=st.dictionaries(NAME, st.text("ab\n", max_size=5), min_size=1, max_size=4),
)
def test_what_was_written_is_fresh_and_nothing_else_is_left(
    before: dict[str, str], after: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(before, folder)
        assert bool(stale(after, folder)) == (before != after)
        write(after, folder)
        assert stale(after, folder) == [] == stray(after, folder)
        found = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.txt")}
        assert found == after


def test_a_file_that_is_fresh_is_not_touched(tmp_path: Path) -> None:
    write({"a.txt": "a"}, tmp_path)
    (tmp_path / "a.txt").chmod(0o444)
    before = (tmp_path / "a.txt").stat().st_mtime_ns
    write({"a.txt": "a"}, tmp_path)
    assert (tmp_path / "a.txt").stat().st_mtime_ns == before


def test_a_rendered_file_that_is_no_text_any_more_is_stale(tmp_path: Path) -> None:
    write({"a.lua": "-- ü\n", "b.lua": "-- b\n"}, tmp_path)
    (tmp_path / "b.lua").write_bytes(b"\xff")
    found = stale({"a.lua": "-- ü\n", "b.lua": "-- b\n"}, tmp_path)
    assert found == ["b.lua: not what its inputs give now"]


def test_a_folder_called_as_a_partition_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "expanse" / "cpu").mkdir(parents=True)
    assert split_name("expanse/cpu") == ("expanse", "cpu")


def test_a_gcc_of_no_generation_is_refused_where_the_generations_are_named() -> None:
    system = load_system("azure-hbv4")
    part = system.partitions["hpc"]
    part = part.model_copy(
        update={"compiler": part.compiler.model_copy(update={"version": "13.1.0"})}
    )
    changed = system.model_copy(update={"partitions": {"hpc": part}})
    plan = make_plan(changed, "hpc", load_release(), load_policy())
    with pytest.raises(Refused) as caught:
        render(plan)
    (problem,) = caught.value.problems
    assert "has gcc 13.1.0" in problem.message and "policy/generations.yaml" in problem.allowed


def built(**changes: Any) -> Plan:
    """azure-hbv4 with `mpi: {transport: built}` and ``changes`` of its partition."""
    system = load_system("azure-hbv4")
    wish = system.partitions["hpc"].mpi.model_copy(update={"transport": "built"})
    part = system.partitions["hpc"].model_copy(update={"mpi": wish, **changes})
    changed = system.model_copy(update={"partitions": {"hpc": part}})
    return make_plan(changed, "hpc", load_release(), load_policy())


SYSTEM = {"origin": "system", "version": "13.3.0"}
ALONE = {"compiler": SYSTEM, "fabric": "shm", "nic": None, "nodes": 1}


def compiled_by(changes: dict[str, Any]) -> dict[str, Any]:
    """``changes`` whose compiler is that of azure-hbv4 but for what they name."""
    row = changes.get("compiler", {})
    compiler = load_system("azure-hbv4").partitions["hpc"].compiler.model_copy(update=row)
    return {**changes, "compiler": compiler}


def test_over_the_compiler_of_the_system_the_ucx_of_the_release_is_built() -> None:
    plan = built(**compiled_by({"compiler": SYSTEM}))
    assert next((one.name, one.module) for one in plan.packages) == ("UCX", "ucx/1.20.0")
    assert plan.mpi[0].transport["provision"] == "built"
    text = mpi_easyconfig(plan, plan.mpi[0])
    assert "dependencies = [('UCX', '1.20.0')]" in text
    assert "osdependencies = [('libhwloc-dev', 'hwloc-devel')]" in text
    ucx = render(plan)["easyconfigs/UCX-1.20.0-GCC-13.3.0.eb"]
    assert "toolchain = {'name': 'GCC', 'version': '13.3.0'}" in ucx
    assert "--with-verbs --with-rc --with-dc --with-ud --with-mlx5 --with-rdmacm" in ucx
    graph = easybuild_graph(plan, render(plan), DATA)
    assert "UCX-1.20.0-GCC-13.3.0.eb" in graph.nodes[plan.mpi[0].easyconfig].needs


def test_on_one_machine_its_ucx_builds_no_verbs() -> None:
    plan = built(**compiled_by(ALONE))
    assert "UCX" in [one.name for one in plan.packages]
    assert not [name for name in render(plan) if "UCX" in name]


def test_a_transport_that_easybuild_builds_is_a_dependency_of_the_mpi() -> None:
    plan = built()
    assert plan.mpi[0].transport["provision"] == "built"
    text = mpi_easyconfig(plan, plan.mpi[0])
    assert "dependencies = [('UCX', '1.13.1'), ('hwloc', '2.8.0')]" in text
    assert "\nosdependencies = []" in text


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"compiler": {"origin": "external"}}, "EasyBuild builds UCX with its own compiler"),
        ({"compiler": SYSTEM, "externals": {"ucx": External(prefix="/usr")}}, "own: ucx"),
        ({"compiler": SYSTEM, "gpu": "nvidia"}, "has no transport for mvapich-plus"),
        ({**ALONE, "gpu": "nvidia"}, "its UCX is for host memory, and this has gpu"),
        ({"compiler": SYSTEM, "fabric": "efa", "nic": None}, "does not stand on UCX"),
        ({"compiler": {"version": "13.1.0"}}, "of a generation that names it"),
        ({"externals": {"ucx": External(prefix="/usr")}}, "the file names the system's own: ucx"),
        ({"fabric": "slingshot-11", "nic": None}, "libfabric has no provider cxi"),
    ],
)
def test_a_transport_that_cannot_be_built_is_refused(changes: Any, because: str) -> None:
    with pytest.raises(Refused) as caught:
        built(**compiled_by(changes))
    assert because in caught.value.problems[0].because


def test_a_package_is_left_out_of_a_generation_that_does_not_name_what_it_stands_on() -> None:
    system, policy = load_system("azure-hbv4"), load_policy()
    row = policy.generations["2025b"]
    versions = {name: one for name, one in row.versions.items() if name != "tcsh"}
    policy.generations["2025b"] = row.model_copy(update={"versions": versions})
    compiler = system.partitions["hpc"].compiler.model_copy(update={"version": row.gcc})
    part = system.partitions["hpc"].model_copy(update={"compiler": compiler})
    changed = system.model_copy(update={"partitions": {"hpc": part}})
    plan = make_plan(changed, "hpc", load_release(), policy, Given(profile="full"))
    left = {one["name"]: one["because"] for one in plan.left_out}
    assert left["WRF"] == "it stands on tcsh, which generation 2025b does not name"
    assert "LAMMPS" not in left


def test_packages_are_for_generations_that_are_there() -> None:
    known = set(load_policy().generations)
    assert {one for row in load_release().packages for one in row.where.generations} <= known
