"""A whole installation and its interruptions, with a small program in place of EasyBuild.

Real builds of real packages are tested in tests/integration and by `mvstack up`; here it is what
stays and what goes when one is ended at each moment.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from install_tree import look, plan_in, states

from mvstack.builders.base import Run
from mvstack.builders.easybuild import command as eb
from mvstack.builders.easybuild import install as run
from mvstack.plan.types import Plan
from mvstack.sources.fetch import Fetched, Fetcher
from mvstack.sources.spec import SourceSpec
from mvstack.sources.store import Store
from mvstack.support.errors import BuildFailed, Missing, Refused, SourceError
from mvstack.support.progress import Progress
from mvstack.tree.records import Records

ALL = ["GCC", "MVAPICH", "gmvapich", "HPCC"]

# Writes the module of the easyconfig that it is given last, notes how it was called, and does what
# a file called after the software says.
PROGRAM = """\
#!/bin/bash
top={top}
file="${{!#}}"; name="${{file%%-*}}"
echo "$name $*" >> "$top/calls"
[ ! -f "$top/before-$name" ] || . "$top/before-$name"
echo "== building..."
module=$(awk -F '\\t' -v f="$file" '$1 == f {{ print $2 }}' "$top/modules")
mkdir -p "$(dirname "$module")"; echo "-- $file" > "$module"
[ ! -f "$top/after-$name" ] || . "$top/after-$name"
"""


class Stocked(Fetcher):
    """A mirror that has every source: nothing here is unpacked."""

    def fetch(self, spec: SourceSpec) -> Fetched:
        return Fetched(self.store.root / "x", spec.filename, spec.hashes[0], "mirror", True)

    def link_easybuild(self, spec: SourceSpec, fetched: Fetched) -> Path:
        return fetched.path


class Tree:
    """One install root with the program that stands for EasyBuild."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.top = top
        self.plan = plan_in(top / "root")
        self.tree = Path(self.plan.tree)
        program = top / "easybuild"
        program.write_text(PROGRAM.format(top=top))
        program.chmod(0o755)
        lmod = top / "lmod" / "libexec" / "lmod"
        lmod.parent.mkdir(parents=True)
        lmod.touch()
        monkeypatch.setenv("LMOD_CMD", str(lmod))
        monkeypatch.setattr(eb, "_program", lambda: [str(program)])

    def install(self, plan: Plan | None = None, **more: Any) -> list[str]:
        """Install; the software that was built."""
        plan = plan or self.plan
        rows = [f"{item.node.key}\t{item.module_file}\n" for item in look(plan)]
        (self.top / "modules").write_text("".join(rows))
        fetcher = Stocked(Store(self.top / "sources"), [], self.top / "state")
        done = run.install(plan, Run(fetcher, Progress(mode="quiet"), **more))
        assert all(row["result"] == "built" for row in done)
        return [row["package"] for row in done]

    def once(self, when: str, script: str) -> None:
        """What the program does the next time that it builds a software (``before-GCC``)."""
        (self.top / when).write_text(f"rm {self.top / when}\n{script}\n")

    def calls(self) -> list[str]:
        file = self.top / "calls"
        found = file.read_text().splitlines() if file.is_file() else []
        file.unlink(missing_ok=True)
        return found

    @property
    def core(self) -> Path:
        return self.tree / "modules" / "Core" / "mvapich-stack" / f"{self.plan.release}.lua"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    umask = os.umask(0o022)
    yield Tree(tmp_path, monkeypatch)
    os.umask(umask)


def test_all_is_built_in_order_and_recorded(tree: Tree) -> None:
    assert tree.install() == ALL
    rows = [json.loads(line) for line in (tree.tree / "records" / "builds.jsonl").open()]
    assert [row["package"] for row in rows] == ALL
    for row in rows:
        assert "building" in row["steps"] and Path(row["log"]).is_file() and row["hash"]
    assert rows[1]["sources"][0]["file"] == "mvapich-4.0.tar.gz"
    assert json.loads((tree.tree / "records" / "plan.json").read_text())["system"] == "azure-hbv4"
    assert "mvapich/4.0-ucx" in tree.core.read_text()
    assert "module use" in (tree.tree / "init" / "bash").read_text()


def test_the_second_time_nothing_is_built(tree: Tree) -> None:
    tree.install()
    tree.calls()
    assert tree.install() == [] and tree.calls() == []


def test_what_was_tuned_comes_into_the_module_and_goes_and_nothing_is_built(tree: Tree) -> None:
    tree.install()
    (build,) = tree.plan.mpi
    module = next(item.module_file for item in look(tree.plan) if item.node.kind == "mpi")
    plain = module.read_text()
    for value in ("65536", "262144"):
        rows = {"UCX_RNDV_THRESH": {"value": value, "why": "measured", "source": "here"}}
        assert tree.install(replace(tree.plan, mpi=[replace(build, tuning=rows)])) == []
        assert module.read_text().count('tune("') == 1
        assert f'tune("UCX_RNDV_THRESH", "{value}")' in module.read_text()
    assert tree.install() == [] and module.read_text() == plain


def test_a_failed_build_keeps_what_was_before_and_opens_nothing(tree: Tree) -> None:
    tree.once("before-gmvapich", "echo 'ERROR: no luck'; exit 1")
    with pytest.raises(BuildFailed, match="no luck"):
        tree.install()
    assert not tree.core.exists()  # a tree that is not whole has no module that opens it
    rows = [json.loads(line) for line in (tree.tree / "records" / "builds.jsonl").open()]
    assert [row["result"] for row in rows] == ["built", "built", "failed"]
    assert tree.install() == ["gmvapich", "HPCC"]
    assert tree.core.is_file()


def test_with_keep_going_a_failed_build_ends_only_what_stands_on_it(tree: Tree) -> None:
    plan = plan_in(tree.top / "root", profile="small")
    names = {item.node.name for item in look(plan)}
    assert names == {*ALL, "FFTW", "FFTW.MPI", "Hypre", "mpi4py"}
    tree.once("before-FFTW", "echo 'ERROR: no luck'; exit 1")
    with pytest.raises(BuildFailed, match="no luck") as caught:
        tree.install(plan, keep_going=True)
    assert "1 failed, and 1 that stand on them were not tried" in caught.value.outcome
    assert {call.split()[0] for call in tree.calls()} == names - {"FFTW.MPI"}
    assert not tree.core.exists()
    assert tree.install(plan) == ["FFTW", "FFTW.MPI"] and tree.core.is_file()


def test_killed_while_it_builds_the_same_command_goes_on(tree: Tree) -> None:
    tree.once("before-MVAPICH", "kill -9 $$")
    with pytest.raises(BuildFailed):
        tree.install()
    assert tree.install() == ["MVAPICH", "gmvapich", "HPCC"]


def test_killed_after_the_module_was_written_it_is_not_built_again(tree: Tree) -> None:
    tree.once("after-MVAPICH", "kill -9 $$")
    with pytest.raises(BuildFailed):
        tree.install()
    tree.calls()
    assert tree.install() == ["gmvapich", "HPCC"]
    mpi = look(tree.plan)[1]
    assert Records(tree.tree).hashes()[mpi.node.key] == mpi.node.content  # noted by now
    assert tree.install() == []


def test_before_a_change_is_built_nothing_of_the_old_can_be_loaded(tree: Tree) -> None:
    tree.install()
    tree.calls()
    tree.once("before-MVAPICH", f"find {tree.tree}/modules -name '*.lua' | sort > {tree.top}/seen")
    other = plan_in(tree.top / "root", ("[nfs, ufs]", "[lustre, nfs, ufs]"))
    assert tree.install(other) == ALL[1:]
    assert (tree.top / "seen").read_text().split() == [str(look(other)[0].module_file)]
    assert all(" --rebuild " in call for call in tree.calls())
    assert tree.core.is_file() and set(states(other).values()) == {"present"}


def test_a_change_that_was_interrupted_goes_on(tree: Tree) -> None:
    tree.install()
    other = plan_in(tree.top / "root", ("[nfs, ufs]", "[lustre, nfs, ufs]"))
    tree.once("before-gmvapich", "kill -9 $$")
    with pytest.raises(BuildFailed):
        tree.install(other)
    assert not tree.core.exists()
    assert tree.install(other) == ["gmvapich", "HPCC"]


def test_a_module_in_another_place_is_an_error(tree: Tree) -> None:
    tree.once("after-GCC", 'rm "$module"')
    with pytest.raises(BuildFailed, match="wrote no module where it belongs") as caught:
        tree.install()
    assert caught.value.problems[0].where.endswith("Core/gcc/12.2.0.lua")


def test_a_source_that_cannot_be_had_stops_before_anything_is_built(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stocked, "fetch", Fetcher.fetch)
    monkeypatch.setattr(Fetcher, "_places", lambda *_: iter(()))
    with pytest.raises(SourceError, match=r"mvapich-4\.0\.tar\.gz"):
        tree.install()
    assert tree.calls() == [] and not tree.core.exists()


def test_what_is_refused_leaves_the_tree_as_its_plan_says(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mpi-doctor, `test` and `report` read the plan, and modules name files of ``rendered``."""
    tree.install()
    plan = tree.tree / "records" / "plan.json"
    (kept := tree.tree / "rendered" / "tuning" / "table.json").parent.mkdir(exist_ok=True)
    kept.write_text("{}")
    before = plan.read_text()
    monkeypatch.setattr(Stocked, "fetch", Fetcher.fetch)
    monkeypatch.setattr(Fetcher, "_places", lambda *_: iter(()))
    mpi = replace(tree.plan.mpi[0], why="another")
    (tree.tree / "modules" / "Compiler/gcc/12.2.0/mvapich/4.0-ucx.lua").unlink()
    with pytest.raises(SourceError):
        tree.install(replace(tree.plan, mpi=[mpi]))
    assert plan.read_text() == before and kept.is_file() and tree.core.is_file()


def test_a_tree_that_was_copied_or_moved_is_not_taken_for_an_installed_one(tree: Tree) -> None:
    tree.install()
    elsewhere = tree.top / "elsewhere"
    shutil.copytree(tree.top / "root", elsewhere, symlinks=True)
    with pytest.raises(Refused, match="was moved or copied") as caught:
        tree.install(plan_in(elsewhere))
    assert f"it was made as {tree.tree}" in caught.value.problems[0].found
    (tree.top / "link").symlink_to(tree.top / "root")  # as an automounter gives another name
    assert tree.install(plan_in(tree.top / "link")) == []


def test_a_disk_that_is_too_small_is_told_first(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "FREE_GB", 10**9)
    with pytest.raises(Missing, match="GB are free and an installation needs about"):
        tree.install()
    assert tree.calls() == []


def test_a_group_that_is_not_there_is_named(tree: Tree) -> None:
    with pytest.raises(Missing, match="no-such-group") as caught:
        tree.install(group="no-such-group")
    assert "install.group" in caught.value.problems[0].todo and tree.calls() == []


def test_the_sites_umask_holds_for_what_is_written(tree: Tree) -> None:
    tree.install(umask="027")
    assert (tree.tree / "rendered" / "plan.json").stat().st_mode & 0o777 == 0o640
    assert tree.tree.stat().st_mode & 0o007 == 0
