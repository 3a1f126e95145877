"""A tree is opened by one line in any bash, and shows nothing that is not whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from install_tree import look, plan_in

from mvstack.plan.types import Plan
from mvstack.support.errors import Missing
from mvstack.tree import modules


def lmod() -> str:
    try:
        return modules.lmod_command("/opt/mvapich-stack")
    except Missing as error:
        pytest.skip(error.problems[0].message)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """A tree with modules of a compiler, an MPI below it and a package below that."""
    lmod()  # or it is skipped
    plan = plan_in(tmp_path_factory.mktemp("root"))
    opens = {"GCC": "Compiler/gcc/12.2.0", "MVAPICH": "MPI/gcc/12.2.0/mvapich/4.0-ucx"}
    for item in look(plan):
        text = f'setenv("GOT_{item.node.name.upper()}", "yes")\n'
        if below := opens.get(item.node.name):
            text += f'prepend_path("MODULEPATH", "{plan.tree}/modules/{below}")\n'
        item.module_file.parent.mkdir(parents=True, exist_ok=True)
        item.module_file.write_text(text)
    modules.publish(plan)
    return plan


def bash(script: str, *options: str) -> str:
    """What a bash with nothing in its environment prints."""
    done = subprocess.run(
        ["bash", *options, "-c", script],
        env={"PATH": os.defpath, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("options", [(), ("--noprofile", "--norc"), ("-l",), ("-eu",)])
def test_one_line_opens_the_tree_in_any_bash(plan: Plan, options: tuple[str, ...]) -> None:
    said = bash(
        f"source {plan.tree}/init/bash; module load mvapich-stack hpcc; "
        "echo $GOT_GCC $GOT_MVAPICH $GOT_HPCC $MVSTACK_RELEASE $MVSTACK_TREE",
        *options,
    )
    assert f"yes yes yes {plan.release} {plan.tree}" in said


def test_it_can_be_sourced_twice_and_beside_others(plan: Plan, tmp_path: Path) -> None:
    other = tmp_path / "site" / "sites-own"
    other.mkdir(parents=True)
    (other / "1.lua").touch()
    said = bash(
        f"source {plan.tree}/init/bash; module use {other.parent}; source {plan.tree}/init/bash; "
        "module -t avail 2>&1"
    )
    assert "sites-own/1" in said and said.count("mvapich-stack/") >= 1


def test_help_says_how_to_launch(plan: Plan) -> None:
    said = bash(f"source {plan.tree}/init/bash; module help mvapich-stack 2>&1")
    assert "srun --mpi=pmi2 -n RANKS ./PROGRAM" in said and "module load mvapich/4.0-ucx" in said


def test_hidden_modules_are_not_shown(plan: Plan) -> None:
    said = bash(f"source {plan.tree}/init/bash; module -t avail 2>&1")
    assert "gmvapich" not in said and "gcc/12.2.0" in said


def test_a_withdrawn_module_cannot_be_loaded(plan: Plan) -> None:
    modules.withdraw(modules.core_file(Path(plan.tree), plan.release))
    modules.withdraw(
        modules.core_file(Path(plan.tree), plan.release)
    )  # also when it is gone already
    said = bash(f"source {plan.tree}/init/bash; module load mvapich-stack 2>&1 || echo refused")
    assert "refused" in said
    modules.publish(plan)
    said = bash(f"source {plan.tree}/init/bash; module load mvapich-stack && echo $GOT_MVAPICH")
    assert "yes" in said


def test_an_update_of_lmod_leaves_a_tree_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lmod").symlink_to("8.6.19")  # as distributions have it: the link stays
    command = tmp_path / "lmod" / "libexec" / "lmod"
    monkeypatch.setattr(modules, "lmod_command", lambda _: str(command))
    modules.publish(plan := plan_in(tmp_path / "root"))
    assert f"source {tmp_path}/lmod/init/bash" in Path(plan.tree, "init", "bash").read_text()
