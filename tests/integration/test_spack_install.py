"""A whole installation by Spack and its interruptions, with a small program in place of Spack.

Real Spack is tried in tests/integration; here it is what stays and what goes when a run is ended at
each moment, and what a person is told.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from install_tree import plan_in

from mvstack.builders.base import Run
from mvstack.builders.spack import environments, lock, modules
from mvstack.builders.spack import install as installation
from mvstack.builders.spack.builder import BUILDER
from mvstack.builders.spack.clone import Clones
from mvstack.builders.spack.isolated import Isolated
from mvstack.ci import lock as pipelines
from mvstack.plan.types import Plan
from mvstack.sources.fetch import Fetcher
from mvstack.sources.store import Store
from mvstack.support.errors import BuildFailed, CheckFailed, Missing, Problem
from mvstack.support.progress import Progress

FAKE = Path(__file__).resolve().parent / "spack_fake.py"
BY_SPACK = ("builder: easybuild", "builder: spack")
SYSTEM_GCC = ("origin: easybuild", "origin: system")
KEYS = {"glibc": "g" * 32, "mvapich": "m" * 32, "hpcc": "h" * 32}


def answer(keys: dict[str, str]) -> str:
    """The fake solver's lock file: hpcc over mvapich over the machine's glibc."""
    below = {"glibc": [], "mvapich": ["glibc"], "hpcc": ["mvapich"]}
    specs: dict[str, Any] = {}
    for name, key in keys.items():
        specs[key] = {
            "name": name,
            "version": "1",
            "arch": {"platform": "linux", "platform_os": "debian12", "target": "zen4"},
            "dependencies": [
                {"name": one, "hash": keys[one], "parameters": {"deptypes": ["link"]}}
                for one in below.get(name, [])
            ],
        }
    specs[keys["glibc"]]["external"] = {"path": "/usr"}
    roots = [{"hash": keys[name], "spec": name} for name in keys if name != "glibc"]
    meta = {"file-type": "spack-lockfile", "lockfile-version": 6}
    return json.dumps({"_meta": meta, "concrete_specs": specs, "roots": roots})


class Tree:
    """One install root with the program that stands for Spack."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.top = top
        self.plan = plan_in(top / "root", BY_SPACK, SYSTEM_GCC)
        self.tree = Path(self.plan.tree)
        (top / "lock.json").write_text(answer(KEYS))
        lmod = top / "lmod" / "libexec" / "lmod"
        lmod.parent.mkdir(parents=True)
        lmod.touch()
        monkeypatch.setenv("LMOD_CMD", str(lmod))
        cloned = Clones(top / "home", top / "home" / "spack", top / "home" / "packages")
        monkeypatch.setattr(environments, "clones", lambda *_: cloned)
        monkeypatch.setattr(environments, "python", lambda *_: Path(sys.executable))
        monkeypatch.setattr(lock, "through_the_gates", lambda *_, **__: None)
        monkeypatch.setattr(Isolated, "command", self._command)

    def _command(self, *words: str) -> list[str]:
        (self.top / "store").write_text(str(self.tree / "software"))
        return [sys.executable, str(FAKE), str(self.top), *words]

    def install(self, plan: Plan | None = None, **more: Any) -> list[str]:
        """Install; the packages that were built."""
        fetcher = Fetcher(Store(self.top / "sources"), [])
        done = BUILDER.install(plan or self.plan, Run(fetcher, Progress(mode="quiet"), **more))
        assert all(row["result"] == "built" for row in done)
        return [row["package"] for row in done]

    def once(self, when: str, script: str) -> None:
        """What is run at one moment (``before-hpcc``, ``after-mvapich``, ``after-sources.py``)."""
        (self.top / when).write_text(script + "\n")

    def calls(self) -> list[str]:
        """What Spack was called for since the last time that this was asked."""
        file = self.top / "calls"
        found = file.read_text().splitlines() if file.is_file() else []
        file.unlink(missing_ok=True)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The records of builds."""
        file = self.tree / "records" / "builds.jsonl"
        return [json.loads(line) for line in file.open()] if file.is_file() else []

    def modules(self) -> list[str]:
        """The modules that can be loaded."""
        folder = self.tree / "modules"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.lua"))


ALL = [
    "Compiler/gcc/12.2.0/mvapich/4.0-ucx.lua",
    "Core/gcc/12.2.0.lua",
    "Core/mvapich-stack/2026.11.lua",
    "MPI/gcc/12.2.0/mvapich/4.0-ucx/hpcc/1.5.0.lua",
]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tree]:
    umask = os.umask(0o022)
    yield Tree(tmp_path, monkeypatch)
    os.umask(umask)


# --- a run that nothing disturbs ------------------------------------------------------------------


def test_all_is_solved_built_and_given_modules(tree: Tree) -> None:
    assert tree.install() == ["MVAPICH", "HPCC"]
    assert tree.calls() == [
        "python concretize.py",
        "python sources.py",
        "install",
        "python modules.py",
    ]
    assert tree.modules() == ALL
    rows = tree.rows()
    assert [row["module"] for row in rows] == ["mvapich/4.0-ucx", "hpcc/1.5.0"]
    assert rows[1]["mpi"] == "mvapich/4.0-ucx" and rows[1]["seconds"] == 1.3
    assert rows[1]["steps"] == {"stage": 0.1, "build": 1.2}
    assert json.loads((tree.tree / "records" / "plan.json").read_text())["builder"] == "spack"
    kept = json.loads((tree.tree / "records" / "lock.json").read_text())
    assert kept["packages"] == 3 and kept["built"] == 2


def test_a_person_can_use_the_same_spack(tree: Tree) -> None:
    tree.install()
    done = subprocess.run(
        ["bash", "-c", f"source {tree.tree}/spack/env.sh && echo $SPACK_PYTHON && echo $PATH"],
        capture_output=True,
        text=True,
        check=True,
    )
    python, path = done.stdout.splitlines()
    assert python == sys.executable
    assert path.startswith(str(tree.top / "home" / "spack" / "bin"))


def test_the_loaders_folders_are_this_machines() -> None:
    assert {"/lib", "/usr/lib64"} <= modules.loader_folders()


def test_the_second_time_spack_is_not_even_called(tree: Tree) -> None:
    tree.install()
    tree.calls()
    assert tree.install() == [] and tree.calls() == []
    assert tree.modules() == ALL


def test_a_dry_run_says_what_is_known(tree: Tree) -> None:
    rows = BUILDER.pending(tree.plan)
    assert {row["result"] for row in rows} == {"would concretize and build"}
    assert "mvapich/4.0-ucx" in {row["module"] for row in rows}
    tree.once("before-hpcc", "exit 1")
    with pytest.raises(BuildFailed):
        tree.install()
    assert [row["package"] for row in BUILDER.pending(tree.plan)] == ["hpcc"]


def test_the_mpis_module_says_what_easybuilds_says(tree: Tree) -> None:
    tree.install()
    text = (tree.tree / "modules" / ALL[0]).read_text()
    prefix = tree.tree / "software" / KEYS["mvapich"]
    for words in (
        'conflict("mvapich")',
        'family("mpi")',
        f'prepend_path("MODULEPATH", "{tree.tree}/modules/MPI/gcc/12.2.0/mvapich/4.0-ucx")',
        f'setenv("MPICC", "{prefix}/bin/mpicc")',
        'prepend_path("LD_LIBRARY_PATH", "/opt/fabric/lib")',
        "srun --mpi=pmi2 -n RANKS ./PROGRAM",
    ):
        assert words in text
    core = (tree.tree / "modules" / "Core" / "gcc" / "12.2.0.lua").read_text()
    assert 'family("compiler")' in core and 'setenv("CC", "gcc")' in core


@pytest.mark.skipif(not shutil.which("luac5.3") and not shutil.which("luac"), reason="no luac")
def test_every_module_is_lua(tree: Tree) -> None:
    tree.install()
    luac = shutil.which("luac5.3") or shutil.which("luac") or ""
    for name in tree.modules():
        subprocess.run([luac, "-p", str(tree.tree / "modules" / name)], check=True)


# --- what is ended in the middle ------------------------------------------------------------------


def test_recipes_that_spack_had_half_copied_when_it_was_killed_are_gone(tree: Tree) -> None:
    """Spack itself ends with "No repo.yaml found" when it meets such a folder."""
    half = tree.tree / "rendered" / "spack" / ".spack-env" / "repos" / "mvapich_stack"
    half.mkdir(parents=True)
    tree.once("after-concretize", f"test ! -e {half}")
    assert tree.install() == ["MVAPICH", "HPCC"]


def test_a_failed_package_is_named_with_phase_log_and_its_words(tree: Tree) -> None:
    tree.once("before-hpcc", "exit 1")
    with pytest.raises(BuildFailed) as caught:
        tree.install()
    problem = caught.value.problems[0]
    assert problem.message == "hpcc 1 was not installed: its phase build failed"
    assert "a.c:1: error: no luck" in problem.found
    assert "error: no luck" in Path(problem.where).read_text()
    assert [row["result"] for row in tree.rows()] == ["built", "failed"]
    assert tree.modules() == []  # nothing of a tree that is not whole can be loaded
    assert tree.install() == ["HPCC"] and tree.modules() == ALL


def test_what_does_not_stand_on_a_failure_is_built_all_the_same(
    tree: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {**KEYS, "libxml2": "x" * 32}
    data = json.loads(answer(keys))
    data["concrete_specs"] = {
        "y" * 32: data["concrete_specs"][KEYS["mvapich"]] | {"name": "tool"}
    } | (data["concrete_specs"])
    data["roots"].append({"hash": "y" * 32, "spec": "tool"})
    (tree.top / "lock.json").write_text(json.dumps(data))
    tree.once("before-tool", "exit 1")
    fetcher = Fetcher(Store(tree.top / "sources"), [])
    with pytest.raises(BuildFailed, match="tool 1 was not installed"):
        BUILDER.install(tree.plan, Run(fetcher, Progress(mode="plain")))
    said = capsys.readouterr().err
    assert "package tool 1 (1 of 4): failed after" in said
    assert "package mvapich 1 (2 of 4): done in" in said
    assert {row["package"]: row["result"] for row in tree.rows()} == {
        "tool": "failed",
        "MVAPICH": "built",
        "libxml2": "built",
    }


@pytest.mark.parametrize(
    ("when", "then"),
    [
        ("after-concretize", ["MVAPICH", "HPCC"]),
        ("after-sources.py", ["MVAPICH", "HPCC"]),
        ("before-mvapich", ["MVAPICH", "HPCC"]),
        ("after-mvapich", ["HPCC"]),
        ("after-hpcc", []),
        ("after-modules.py", []),
    ],
)
def test_killed_at_any_moment_the_same_command_goes_on(
    tree: Tree, when: str, then: list[str]
) -> None:
    # ends the program that runs the installation and with it, by the kernel, all that it started
    tree.once(when, 'kill -9 "$MVSTACK_TEST_PID"; sleep 30')
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tree.top), str(FAKE)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    assert "Core/mvapich-stack/2026.11.lua" not in tree.modules()
    assert all(path.read_text().startswith("-- Generated") for path in _lua(tree))
    assert tree.install() == then
    assert tree.modules() == ALL
    tree.calls()
    assert tree.install() == [] and tree.calls() == []


def _lua(tree: Tree) -> list[Path]:
    return list((tree.tree / "modules").rglob("*.lua"))


KILLED = """
import os, sys
from pathlib import Path
os.environ["MVSTACK_TEST_PID"] = str(os.getpid())
import pytest
import test_spack_install
with pytest.MonkeyPatch.context() as patch:
    tree = test_spack_install.Tree.__new__(test_spack_install.Tree)
    (Path(sys.argv[1]) / "lmod").rename(Path(sys.argv[1]) / "lmod.old")
    tree.__init__(Path(sys.argv[1]), patch)
    tree.install()
"""


def test_before_a_change_is_built_nothing_of_the_old_can_be_loaded(tree: Tree) -> None:
    tree.install()
    other = plan_in(tree.top / "root", BY_SPACK, SYSTEM_GCC, ("[nfs, ufs]", "[lustre, nfs, ufs]"))
    new = {**KEYS, "mvapich": "n" * 32, "hpcc": "i" * 32}
    (tree.top / "lock.json").write_text(answer(new))
    seen = tree.top / "seen"
    tree.once("before-mvapich", f"find {tree.tree}/modules -name '*.lua' > {seen}")
    assert tree.install(other) == ["MVAPICH", "HPCC"]
    assert seen.read_text() == ""
    assert tree.modules() == ALL
    assert ("n" * 32) in (tree.tree / "modules" / ALL[0]).read_text()


def test_what_a_plan_has_no_more_loses_its_module(tree: Tree) -> None:
    tree.install()
    stray = tree.tree / "modules" / "MPI" / "gcc" / "12.2.0" / "mvapich" / "4.0-ucx" / "old.lua"
    stray.write_text("-- a module of an earlier plan\n")
    nodes = tree.tree / "records" / "nodes.json"
    known = json.loads(nodes.read_text())
    nodes.write_text(json.dumps({**known, str(stray.relative_to(tree.tree / "modules")): "x"}))
    tree.install()
    assert tree.modules() == ALL


def test_a_module_that_was_removed_is_written_again_and_nothing_built(tree: Tree) -> None:
    tree.install()
    (tree.tree / "modules" / ALL[3]).unlink()
    tree.calls()
    assert tree.install() == [] and tree.modules() == ALL
    assert tree.calls() == ["python modules.py"]


# --- what is refused ------------------------------------------------------------------------------


def test_a_gate_that_fails_stops_before_anything_is_built(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise CheckFailed(Problem("two MPIs", "hpcc"))

    monkeypatch.setattr(lock, "through_the_gates", broken)
    with pytest.raises(CheckFailed, match="two MPIs"):
        tree.install()
    assert tree.calls() == ["python concretize.py"] and tree.modules() == [] and tree.rows() == []


def test_an_environment_that_cannot_be_solved_says_what_spack_said(tree: Tree) -> None:
    tree.once(
        "after-concretize",
        "echo '==> Error: failed to concretize `a` for the following reasons:'; "
        "echo; echo '     1. cannot satisfy a requirement'; exit 1",
    )
    with pytest.raises(BuildFailed, match="cannot be concretized") as caught:
        tree.install()
    problem = caught.value.problems[0]
    assert "failed to concretize `a`" in problem.found
    assert "1. cannot satisfy a requirement" in problem.found
    assert problem.where == "azure-hbv4/hpc"
    assert tree.install() == ["MVAPICH", "HPCC"]  # the half answer was not believed


def test_too_little_room_is_told_first(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "FREE_GB", 10**9)
    with pytest.raises(Missing, match="GB are free and an installation needs about"):
        tree.install()
    assert tree.calls() == []


# --- a compiler that Spack builds -----------------------------------------------------------------


def test_a_compiler_of_its_own_is_built_first_and_its_module_names_its_folder(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.plan = plan_in(tree.top / "root", BY_SPACK, ("origin: easybuild", "origin: spack"))
    assert tree.install() == ["mvapich", "hpcc"]  # the fake solver knows one answer only
    assert tree.calls()[0] == "python concretize.py"
    assert (tree.tree / "rendered" / "spack" / "compiler" / "spack.lock").is_file()
    text = (tree.tree / "modules" / "Core" / "gcc" / "12.2.0.lua").read_text()
    assert f'prepend_path("PATH", "{tree.tree}/compiler/gcc-12.2.0/bin")' in text
    assert (tree.tree / "spack" / "compiler" / "config" / "repos.yaml").is_file()


def test_a_compiler_for_pipelines_is_built_alone_and_used_from_every_tree(tree: Tree) -> None:
    plan = plan_in(tree.top / "root", BY_SPACK, ("origin: easybuild", "origin: spack"))
    shared = str(tree.top / "compilers")
    own = pipelines.of_compiler(plan, shared)
    tree.plan, tree.tree = own, Path(own.tree)
    assert tree.install(wanted=installation.COMPILER)  # the fake solver knows one answer only
    calls = tree.calls()
    assert calls[0] == "python concretize.py" and calls.count("python concretize.py") == 1
    assert "python modules.py" not in calls and tree.modules() == []
    assert (tree.tree / "rendered" / "spack" / "compiler" / "spack.lock").is_file()
    assert not (tree.tree / "rendered" / "spack" / "spack.lock").is_file()

    stack = pipelines.over_compilers(plan, shared)
    tree.plan, tree.tree = stack, Path(stack.tree)
    assert tree.install() == ["MVAPICH", "HPCC"] and tree.modules() == ALL
    assert not (tree.tree / "rendered" / "spack" / "compiler").exists()
    text = (tree.tree / "modules" / "Core" / "gcc" / "12.2.0.lua").read_text()
    assert f'prepend_path("PATH", "{own.tree}/compiler/gcc-12.2.0/bin")' in text
    assert "The site's GNU compilers" in text
