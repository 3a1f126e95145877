"""A real build of one file: where its modules stand, and what a kill halfway leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from easybuild_here import EASYCONFIGS, TOP, eb, needs, shell

HELLO = TOP / "tests" / "data" / "easybuild" / "mvstack-hello-1.0.eb"
MODULE = Path("modules/Compiler/gcc/12.2.0/mvstack-hello/1.0.lua")

# Kills EasyBuild, as the kernel would, when half of a certain module file is on the disk.
KILL_HALFWAY = """
import os, signal
from easybuild.framework import easyblock
_real = easyblock.write_file
def _half(path, data, *args, **kwargs):
    if "mvstack-hello" in str(path) and "modules/Compiler" in str(path):
        _real(path, data[:len(data) // 2], *args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
    return _real(path, data, *args, **kwargs)
easyblock.write_file = _half
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs()
    folder = tmp_path_factory.mktemp("eb")
    done = eb(folder, HELLO)
    assert done.returncode == 0, done.stdout[-3000:]
    return folder


def test_the_module_stands_below_its_compiler(root: Path) -> None:
    assert (root / MODULE).is_file()
    assert not list(root.rglob("modules/all"))


def test_a_user_loads_the_compiler_and_then_the_program(root: Path) -> None:
    done = shell(f"module use {root}/modules/Core && module load gcc/12.2.0 mvstack-hello && hello")
    assert done.returncode == 0, done.stdout
    assert done.stdout.strip().endswith("hello")


def test_the_program_cannot_be_loaded_without_its_compiler(root: Path) -> None:
    done = shell(f"module use {root}/modules/Core && module load mvstack-hello")
    assert done.returncode != 0
    assert "mvstack-hello" in done.stdout


def test_what_only_builds_need_is_not_shown(root: Path) -> None:
    done = shell(f"module use {root}/modules/Core && module -t avail 2>&1")
    assert "gcc/12.2.0" in done.stdout
    assert "gcccore" not in done.stdout


def test_nothing_is_built_a_second_time(root: Path) -> None:
    before = (root / MODULE).stat().st_mtime_ns
    done = eb(root, HELLO)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (root / MODULE).stat().st_mtime_ns == before


@pytest.mark.parametrize("with_hook", [True, False])
def test_a_kill_halfway_leaves_no_module(tmp_path: Path, with_hook: bool) -> None:
    needs()
    hooks = f"import sys; sys.path.insert(0, '{EASYCONFIGS}'); from hooks import *"
    killing = tmp_path / "killing.py"
    # first the kill, so that the hook's own writing goes through it
    killing.write_text(f"{KILL_HALFWAY}\n{hooks if with_hook else ''}\n")
    done = eb(tmp_path / "root", HELLO, f"--hooks={killing}")
    assert done.returncode != 0, "the build was not killed"
    module = tmp_path / "root" / MODULE
    if not with_hook:
        assert module.exists(), "without the hook the half-written file is there: the test can fail"
        return
    assert not module.exists()
    load = f"module use {tmp_path}/root/modules/Core && module load gcc/12.2.0 && module load "
    assert shell(f"{load} mvstack-hello").returncode != 0
    # EasyBuild's own lock outlives a kill: who knows that no other install runs has it passed over
    assert "already exists" in eb(tmp_path / "root", HELLO).stdout
    again = eb(tmp_path / "root", HELLO, "--ignore-locks")
    assert again.returncode == 0, again.stdout[-3000:]
    assert shell(f"{load} mvstack-hello && hello").returncode == 0
    assert [path.name for path in module.parent.iterdir()] == ["1.0.lua"]
