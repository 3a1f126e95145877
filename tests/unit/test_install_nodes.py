"""What is built anew and what is not: decided by content, not by dates."""

from __future__ import annotations

import grp
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from install_tree import install, look, plan_in, states

from mvstack.builders.easybuild.builder import BUILDER
from mvstack.plan import easyconfigs
from mvstack.plan.definitions import EASYBLOCK
from mvstack.plan.easybuild import build_order
from mvstack.plan.types import Plan
from mvstack.support import hashes
from mvstack.tree.folder import _own
from mvstack.tree.records import Records, kept_plan

ALL = ["GCC", "MVAPICH", "gmvapich", "HPCC"]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_in(tmp_path)


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of our easyconfigs and easyblocks that a test may change."""
    copy = tmp_path / "easyconfigs"
    shutil.copytree(easyconfigs.FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(easyconfigs, "FOLDER", copy)
    easyconfigs._index.cache_clear()
    yield copy
    easyconfigs._index.cache_clear()


def test_an_empty_tree_needs_all_in_order(plan: Plan) -> None:
    assert list(states(plan)) == ALL
    assert set(states(plan).values()) == {"missing"}


def test_an_installed_tree_needs_nothing(plan: Plan) -> None:
    install(plan)
    assert set(states(plan).values()) == {"present"}


def test_what_was_built_before_an_interruption_stays(plan: Plan) -> None:
    install(plan, ["GCC", "MVAPICH"])
    assert states(plan) == dict(zip(ALL, ["present", "present", "missing", "missing"], strict=True))


def test_a_module_that_somebody_removed_is_built_again(plan: Plan) -> None:
    install(plan)
    look(plan)[1].module_file.unlink()
    assert states(plan)["MVAPICH"] == "missing" and states(plan)["HPCC"] == "present"


def test_a_comment_changes_nothing(plan: Plan, recipes: Path) -> None:
    install(plan)
    base = next(recipes.rglob(plan.mpi[0].easyconfig))
    base.write_text("# a remark\n\n" + base.read_text() + "\n# and another\n")
    block = recipes / "easyblocks" / "mvapich.py"
    block.write_text("# a remark\n" + block.read_text())
    assert set(states(plan).values()) == {"present"}


def test_a_changed_configure_parameter_changes_the_mpi_and_all_above(
    plan: Plan, recipes: Path
) -> None:
    install(plan)
    base = next(recipes.rglob(plan.mpi[0].easyconfig))
    base.write_text(base.read_text() + "\nconfigopts = '--enable-debuginfo'\n")
    assert states(plan) == dict(zip(ALL, ["present", "changed", "changed", "changed"], strict=True))


def test_a_parameter_of_the_partition_changes_the_mpi_and_all_above(tmp_path: Path) -> None:
    install(plan_in(tmp_path))
    other = plan_in(tmp_path, ("file_systems: [nfs, ufs]", "file_systems: [lustre, nfs, ufs]"))
    assert list(states(other).values()) == ["present"] + 3 * ["changed"]


def test_a_changed_easyblock_changes_the_mpi_and_all_above(plan: Plan, recipes: Path) -> None:
    install(plan)
    block = recipes / "easyblocks" / "mvapich.py"
    block.write_text(block.read_text() + "\nNEW = 1\n")
    assert list(states(plan).values()) == ["present"] + 3 * ["changed"]


def test_a_sites_easyconfig_and_easyblock_change_what_they_build_alone(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(plan)
    file = next(easyconfigs.FOLDER.rglob("HPCC-*-gmvapich-*.eb"))
    site = tmp_path / "site" / "easyconfigs"
    (site / "easyblocks").mkdir(parents=True)
    monkeypatch.setenv("MVSTACK_SITE", str(site.parent))
    (site / file.name).write_text(file.read_text())
    assert set(states(plan).values()) == {"present"}
    block = site / "easyblocks" / "labs.py"
    named = EASYBLOCK.findall(file.read_text())
    block.write_text(f"class {named[0] if named else 'EB_HPCC'}:\n    pass\n")
    assert list(states(plan).values()) == 3 * ["present"] + ["changed"]
    block.unlink()
    (site / file.name).write_text(file.read_text() + "\nmaxparallel = 1\n")
    assert list(states(plan).values()) == 3 * ["present"] + ["changed"]


def test_a_changed_package_changes_itself_alone(plan: Plan, recipes: Path) -> None:
    install(plan)
    file = next(recipes.rglob("HPCC-*-gmvapich-*.eb"))
    file.write_text(file.read_text() + "\nmaxparallel = 1\n")
    assert list(states(plan).values()) == 3 * ["present"] + ["changed"]


def test_another_target_changes_everything(tmp_path: Path) -> None:
    install(plan_in(tmp_path))
    other = plan_in(tmp_path, ("target: zen4", "target: zen3"))
    assert set(states(other).values()) == {"changed"}


def test_another_compiler_changes_all_that_it_compiles(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    install(plan)
    system = plan_in(tmp_path, ("origin: easybuild", "origin: system"))
    assert states(system) == {
        "GCCcore": "missing",  # only with the system's compiler is it ours
        "GCC": "changed",
        "MVAPICH": "changed",
        "gmvapich": "changed",
        "HPCC": "changed",
    }


def test_what_decides_nothing_changes_nothing(tmp_path: Path) -> None:
    install(plan_in(tmp_path))
    other = plan_in(tmp_path, ("768 GB, NDR 400 Gb/s", "another title"))
    assert set(states(other).values()) == {"present"}


# --- after a kill --------------------------------------------------------------------------------


def test_killed_between_the_module_and_our_note_of_it_counts_as_built(plan: Plan) -> None:
    install(plan, ["GCC"])
    item = look(plan)[1]
    records = Records(Path(plan.tree))
    records.begin(item.node.key, item.node.content)
    item.module_file.parent.mkdir(parents=True)
    item.module_file.write_text("-- EasyBuild wrote it, whole\n")
    assert states(plan)["MVAPICH"] == "present"


def test_killed_before_the_module_is_missing(plan: Plan) -> None:
    item = look(plan)[1]
    Records(Path(plan.tree)).begin(item.node.key, item.node.content)
    assert states(plan)["MVAPICH"] == "missing"


def test_killed_and_then_changed_is_built_anew(plan: Plan, recipes: Path) -> None:
    item = look(plan)[1]
    Records(Path(plan.tree)).begin(item.node.key, item.node.content)
    item.module_file.parent.mkdir(parents=True)
    item.module_file.touch()
    block = recipes / "easyblocks" / "mvapich.py"
    block.write_text(block.read_text() + "\nNEW = 1\n")
    assert states(plan)["MVAPICH"] == "changed"


def test_a_module_that_we_know_nothing_of_is_built_anew(plan: Plan) -> None:
    install(plan)
    (Path(plan.tree) / "records" / "nodes.json").unlink()
    (Path(plan.tree) / "records" / "building.json").unlink()
    assert set(states(plan).values()) == {"changed"}


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"a": '])
def test_damaged_records_cost_a_build_and_no_error(plan: Plan, text: str) -> None:
    install(plan)
    for name in ("nodes.json", "building.json"):
        (Path(plan.tree) / "records" / name).write_text(text)
    assert set(states(plan).values()) == {"changed"}


def test_a_dry_run_sees_a_change_and_changes_nothing(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    install(plan)
    Records(Path(plan.tree)).begin("other.eb", "1")
    other = plan_in(tmp_path, ("file_systems: [nfs, ufs]", "file_systems: [lustre, nfs, ufs]"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert BUILDER.pending(plan) == []
    assert [row["package"] for row in BUILDER.pending(other)] == ALL[1:]
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


# --- records -------------------------------------------------------------------------------------


def test_records_keep_what_they_are_told(tmp_path: Path) -> None:
    records = Records(tmp_path)
    assert records.hashes() == {} == records.begun()
    records.begin("a.eb", "1")
    records.built("a.eb", "1")
    records.built("b.eb", "2")
    records.built("a.eb", "3")
    assert records.hashes() == {"a.eb": "3", "b.eb": "2"}
    assert records.begun() == {"a.eb": "1"}
    records.append("builds", {"n": 1, "text": "line\nbreak é"})
    records.append("builds", {"n": 2})
    rows = [json.loads(line) for line in (tmp_path / "records" / "builds.jsonl").open()]
    assert rows == [{"n": 1, "text": "line\nbreak é"}, {"n": 2}]
    records.plan({"release": "2026.11"})
    assert json.loads((tmp_path / "records" / "plan.json").read_text()) == {"release": "2026.11"}
    assert not [path for path in (tmp_path / "records").iterdir() if path.name.startswith(".")]


# --- where modules stand -------------------------------------------------------------------------


def test_module_files_stand_in_one_hierarchy(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, ("origin: easybuild", "origin: system"))
    found = [node.file for node in build_order(plan)]
    assert found == [
        "Core/gcccore/.12.2.0.lua",
        "Core/gcc/12.2.0.lua",
        "Compiler/gcc/12.2.0/mvapich/4.0-ucx.lua",
        "Core/gmvapich/.2026.11-ucx.lua",
        "MPI/gcc/12.2.0/mvapich/4.0-ucx/hpcc/1.5.0.lua",
    ]


# --- hashes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("a = 1\n", "# why\na   =  1  # because\n\n", True),
        ("a = 'x'\n", 'a = "x"\n', True),
        ("def f():\n    '''Says.'''\n    return 1\n", "def f():\n    return 1\n", True),
        ("a = 1\n", "a = 2\n", False),
        ("a = '# 1'\n", "a = '# 2'\n", False),
        ("a = 1\nb = 2\n", "b = 2\na = 1\n", False),
        ("not python (", "not python  (", False),
        ("a = '\0'", "a = '\0' ", False),
    ],
)
def test_only_what_decides_is_hashed(one: str, two: str, same: bool) -> None:
    assert (hashes.normalised(one) == hashes.normalised(two)) is same


@pytest.mark.parametrize(
    "text",
    ["[]", "{}", '{"tree": 1, "mpi": 2, "release": 3}', "{", '{"release": "1", "tree": "/x"}'],
)
def test_what_is_no_plan_is_not_taken_for_one(plan: Plan, tmp_path: Path, text: str) -> None:
    records = Records(tmp_path)
    whole = plan.as_dict()
    records.plan(whole)
    assert kept_plan(tmp_path) == json.loads(json.dumps(whole))
    (records.folder / "plan.json").write_text(text)
    with pytest.raises(ValueError):
        kept_plan(tmp_path)
    (records.folder / "plan.json").write_text(json.dumps({**whole, "mpi": [1]}))
    with pytest.raises(ValueError, match="is no plan"):
        kept_plan(tmp_path)


APPLICATION = """\
name = 'App'
version = '1'
toolchain = {'name': 'mvfoss', 'version': '2026.11-ucx'}
builddependencies = [('CMake', '3.24.3')]
dependencies = [('Lib', '1', '', ('gmvapich', '2026.11-ucx'))]
moduleclass = 'chem'
"""
LIBRARY = """\
name = 'Lib'
version = '1'
toolchain = {'name': 'gmvapich', 'version': '2026.11-ucx'}
moduleclass = 'lib'
"""


@pytest.fixture
def stacked(plan: Plan, recipes: Path) -> Plan:
    """The plan with a library, and an application on it over mvfoss."""
    (recipes / "Lib-1-gmvapich-2026.11-ucx.eb").write_text(LIBRARY)
    (recipes / "App-1-mvfoss-2026.11-ucx.eb").write_text(APPLICATION)
    easyconfigs._index.cache_clear()
    first = plan.packages[0]
    library = replace(
        first,
        name="Lib",
        version="1",
        module="lib/1",
        easyconfig="Lib-1-gmvapich-2026.11-ucx.eb",
        toolchain="gmvapich-2026.11-ucx.eb",
    )
    application = replace(
        library,
        name="App",
        module="app/1",
        easyconfig="App-1-mvfoss-2026.11-ucx.eb",
        toolchain="mvfoss-2026.11-ucx.eb",
    )
    return replace(plan, packages=[first, library, application])


def test_the_toolchain_of_a_package_stands_before_the_first_that_needs_it(stacked: Plan) -> None:
    names = [node.name for node in build_order(stacked)]
    assert names == ["GCC", "MVAPICH", "gmvapich", "HPCC", "Lib", "mvfoss", "App"]
    needs = {item.node.name: item.node.needs for item in look(stacked)}
    assert needs["App"][-2:] == ("mvfoss-2026.11-ucx.eb", "Lib-1-gmvapich-2026.11-ucx.eb")
    assert "mvfoss-2026.11-ucx.eb" not in needs["Lib"]


def test_a_changed_library_changes_what_is_built_on_it_and_nothing_else(
    stacked: Plan, recipes: Path
) -> None:
    install(stacked)
    assert set(states(stacked).values()) == {"present"}
    file = recipes / "Lib-1-gmvapich-2026.11-ucx.eb"
    file.write_text(file.read_text() + "configopts = '--with-x'\n")
    changed = [name for name, state in states(stacked).items() if state == "changed"]
    assert changed == ["Lib", "App"]


def test_a_changed_application_leaves_the_library(stacked: Plan, recipes: Path) -> None:
    install(stacked)
    file = recipes / "App-1-mvfoss-2026.11-ucx.eb"
    file.write_text(file.read_text() + "configopts = '--with-x'\n")
    assert [name for name, state in states(stacked).items() if state == "changed"] == ["App"]


def test_an_easyblock_of_ours_changes_the_packages_that_name_it(
    stacked: Plan, recipes: Path
) -> None:
    block = recipes / "easyblocks" / "ours.py"
    block.write_text("class OursBlock:\n    def one(self):\n        return 1\n")
    file = recipes / "Lib-1-gmvapich-2026.11-ucx.eb"
    file.write_text("easyblock = 'OursBlock'\n" + file.read_text())
    install(stacked)
    assert set(states(stacked).values()) == {"present"}
    block.write_text("class OursBlock:\n    def one(self):\n        return 2\n")
    changed = [name for name, state in states(stacked).items() if state == "changed"]
    assert changed == ["Lib", "App"]


def test_the_second_of_a_group_installs_into_the_tree_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:  # as of who does not own the tree
        raise PermissionError

    tree, group = tmp_path / "tree", grp.getgrgid(os.getgid()).gr_name
    _own(tree, group)
    assert tree.group() == group and tree.stat().st_mode & stat.S_ISGID
    monkeypatch.setattr(shutil, "chown", refused)
    monkeypatch.setattr(Path, "chmod", refused)
    _own(tree, group)
