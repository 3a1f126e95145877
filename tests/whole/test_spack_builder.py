"""The Spack builder with the real Spack over packages that build in a second.

One solve for all of it: a failing package, a kill -9 in the middle of a package, the same command
again, modules as a user's bash sees them, and nothing to do at last.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spack_here import spack_here

from mvstack.discover import look

TOP = Path(__file__).resolve().parents[2]
RECIPES = TOP / "tests" / "data" / "spack" / "stand-ins" / "spack_repo" / "mvapich_stack"
LMOD = Path(os.environ.get("LMOD_CMD", "/usr/share/lmod/lmod/libexec/lmod"))

SYSTEM = """\
name: here
builder: spack
os: {os}
partitions:
  node:
    cores: 1
    memory_gb: 1
    target: {target}
    fabric: shm
    launcher: hydra
    file_systems: [ufs]
    compiler: {{name: gcc, version: "{gcc}", origin: system}}
    externals:
      libfabric: {{version: 1.17.0, prefix: /usr, providers: [shm, tcp]}}
    mpi: {{product: mvapich, version: "4.0", device: "ch4:ofi", why: for this test}}
"""
# Runs `mvstack install` with the stand-ins in place of our recipes.
INSTALL = """
import json, os, sys
from pathlib import Path
from mvstack.plan import spack
spack.RECIPES = Path(sys.argv[1])
from mvstack.install import stages
from mvstack.support.errors import MvstackError
from mvstack.builders.base import Run
from mvstack.builders.spack.builder import BUILDER
from mvstack.model.load import load_system
from mvstack.support.progress import Progress
os.environ["MVSTACK_TEST_PID"] = str(os.getpid())
plan = stages.plan_for(load_system(sys.argv[2]), "node", None, Path(sys.argv[3]))
try:
    rows = BUILDER.install(plan, Run(stages.fetcher_for(plan.root), Progress(), jobs=1))
except MvstackError as error:
    print(json.dumps(error.as_dict()))
    sys.exit(error.exit_code)
print(json.dumps(rows))
"""


class Here:
    """An install root whose Spack is the one that tests share."""

    def __init__(self, folder: Path) -> None:
        if not LMOD.is_file():
            pytest.skip("skipped: Lmod is not installed")
        shared = spack_here(folder / "state").clones.home.parent
        self.folder, self.root = folder, folder / "root"
        self.root.mkdir()
        (self.root / "spack").symlink_to(shared)
        self.tree = self.root / "2026.11" / "here-node"
        gcc = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True).stdout
        machine = look()
        text = SYSTEM.format(os=machine.os, target=machine.target, gcc=gcc.strip())
        self.system = folder / "here.yaml"
        self.system.write_text(text)
        # a configuration of the user that would break Spack, were it read
        (folder / "home" / ".spack").mkdir(parents=True)
        (folder / "home" / ".spack" / "config.yaml").write_text("config: [this is not a mapping]\n")
        if (config := Path.home() / ".gitconfig").is_file():
            shutil.copy2(config, folder / "home")

    def install(self, hook: str = "") -> tuple[int, Any]:
        """One installation; its exit status and what it printed. ``hook`` runs inside hpcc."""
        (self.folder / "hook").write_text(hook + "\n")
        environment = {
            **os.environ,
            "HOME": str(self.folder / "home"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PYTHONPATH": str(TOP / "src"),
            "MVSTACK_TEST_HOOK": str(self.folder / "hook") if hook else "",
        }
        command = [sys.executable, "-c", INSTALL, str(RECIPES), str(self.system), str(self.root)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, done.stdout + done.stderr

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """What a user's bash with an empty environment makes of ``script``."""
        script = f"source {self.tree}/init/bash && {script}"
        return subprocess.run(
            ["env", "-i", "PATH=/usr/bin:/bin", "bash", "-c", script],
            capture_output=True,
            text=True,
        )

    def modules(self) -> list[str]:
        """The module files of the tree."""
        folder = self.tree / "modules"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.lua"))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Solved for once; the first installation fails in hpcc."""
    found = Here(tmp_path_factory.mktemp("spack"))
    status, said = found.install("echo 'hook.c:1: error: no luck'; exit 3")
    assert status == 6, said
    found.first = said  # type: ignore[attr-defined]
    return found


@pytest.mark.slow
def test_one_after_the_other(here: Here) -> None:
    """In this order, for each step goes on from the tree that the one before left."""
    a_failing_package_is_named_with_phase_and_log(here)
    killed_in_the_middle_nothing_half_done_can_be_loaded(here)
    the_same_command_goes_on(here)
    a_user_loads_it(here)
    then_there_is_nothing_to_do(here)
    a_broken_gate_stops_it(here)


def a_failing_package_is_named_with_phase_and_log(here: Here) -> None:
    problem = here.first["problems"][0]  # type: ignore[attr-defined]
    assert problem["message"] == "hpcc 1.5.0 was not installed: its phase install failed"
    assert "no luck" in Path(problem["where"]).read_text() and "no luck" in problem["found"]
    assert here.modules() == []


def killed_in_the_middle_nothing_half_done_can_be_loaded(here: Here) -> None:
    status, said = here.install('kill -9 "$MVSTACK_TEST_PID"; sleep 60')
    assert status == -9, said
    halves = list((here.tree / "software").glob("hpcc-*/bin/hpcc"))
    assert [path.read_text() for path in halves] in ([], ["#!/bin/sh\necho half\n"])
    assert here.modules() == []


def the_same_command_goes_on(here: Here) -> None:
    status, rows = here.install()
    assert status == 0, rows
    assert [row["package"] for row in rows] == ["HPCC"]  # the MPI was whole and stays
    records = here.tree / "records" / "builds.jsonl"
    results = [json.loads(line) for line in records.open()]
    assert [(row["package"], row["result"]) for row in results if row["module"]] == [
        ("MVAPICH", "built"),
        ("HPCC", "failed"),
        ("HPCC", "built"),
    ]


def a_user_loads_it(here: Here) -> None:
    level = "gcc/" + here.system.read_text().partition('version: "')[2].partition('"')[0]
    assert here.modules() == [
        f"Compiler/{level}/mvapich/4.0-ofi.lua",
        f"Core/{level}.lua",
        "Core/mvapich-stack/2026.11.lua",
        f"MPI/{level}/mvapich/4.0-ofi/hpcc/1.5.0.lua",
    ]
    done = here.shell("module load mvapich-stack hpcc && hpcc && mpiexec && echo $MPICC $MPI_HOME")
    assert done.stdout.splitlines()[:2] == ["whole", "mpiexec of the stand-in"], done.stderr
    assert f"{here.tree}/software/mvapich-4.0-" in done.stdout.splitlines()[2]
    told = here.shell(
        "module help mvapich/4.0-ofi 2>&1 || module load mvapich-stack; "
        "module load mvapich-stack && module help mvapich/4.0-ofi"
    ).stderr
    assert "mpiexec -n RANKS ./PROGRAM" in told


def then_there_is_nothing_to_do(here: Here) -> None:
    assert here.install() == (0, [])


def a_broken_gate_stops_it(here: Here) -> None:
    """The lock on the disk is changed behind the builder's back: another fabric than planned."""
    lock = here.tree / "rendered" / "spack" / "spack.lock"
    text = lock.read_text()
    assert '"fabrics":["shm"]' in text.replace(" ", "")
    lock.write_text(text.replace('"fabrics":["shm"]', '"fabrics":["tcp"]'))
    status, said = here.install()
    assert status == 1 and said["error"] == "check failed", said
    assert any("shm" in json.dumps(problem) for problem in said["problems"])


def test_it_needs_no_spack_to_be_refused(tmp_path: Path) -> None:
    """A place that cannot be reached is told before anything is written but the plan."""
    if not LMOD.is_file() or not shutil.which("git"):
        pytest.skip("skipped: Lmod or git is not installed")
    machine = look()
    system = tmp_path / "here.yaml"
    system.write_text(SYSTEM.format(os=machine.os, target=machine.target, gcc="12.2.0"))
    done = subprocess.run(
        [sys.executable, "-m", "mvstack", "install", str(system), "--root", str(tmp_path / "root"),
         "--no-prerequisites", "--json"],
        env={
            **os.environ,
            "PYTHONPATH": str(TOP / "src"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "MVSTACK_SPACK_URL": str(tmp_path / "nowhere.git"),
        },
        capture_output=True,
        text=True,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert done.returncode == 5 and "cannot be cloned" in said["problems"][0]["message"]
    for way in ("MVSTACK_SPACK_URL=", "by hand", "builder: easybuild"):
        assert way in said["problems"][0]["todo"]
    assert (
        not list((tmp_path / "root").rglob("*.lua"))
        or not (tmp_path / "root" / "2026.11" / "here-node" / "modules").exists()
    )
