"""The module launch-guard in steps of a real Slurm: who is alone unasked ends, others run on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from checks_tree import LMOD, mpi_here
from test_slurm_loopback import LOOPBACK, PATIENCE, needs_slurm

from mvstack.model.load import load_policy, load_release, load_system
from mvstack.plan.make import make_plan
from mvstack.tree.modules import install_guard

pytestmark = pytest.mark.slow

CHECKS = Path(__file__).parents[1] / "reframe" / "src"
RECIPE = Path(__file__).parents[2] / "spack-repo/spack_repo/mvapich_stack/packages/mvapich/test"
# As mpi4py does it: the library comes with an extension module, which is opened for itself alone.
PLUGIN = r"""
#include <mpi.h>
#include <stdio.h>
int go(void)
{
    int size;
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("plugin world of %d\n", size);
    return MPI_Finalize();
}
"""
OPENS = r"""
#include <dlfcn.h>
int main(void)
{
    void *plugin = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
    return plugin ? ((int (*)(void)) dlsym(plugin, "go"))() : 3;
}
"""
# what the ranks of each program say first, with N for the size of their world
PROGRAMS = {"c": "rank 0 of N", "fortran": "fortran world of N", "plugin": "plugin world of N"}

Shell = Callable[[str], tuple[int, str]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Run lines beside a Slurm, the MPI and launch-guard loaded: exit status and output."""
    needs_slurm()
    folder = tmp_path_factory.mktemp("guard")
    mpi = mpi_here(folder / "mpi")
    plan = make_plan(load_system("qemu-debian12"), "cluster", load_release(None), load_policy())
    install_guard(replace(plan, tree=str(folder)))
    (folder / "plugin.c").write_text(PLUGIN)
    (folder / "opens.c").write_text(OPENS)
    loads = (
        f"source {LMOD}; export MODULEPATH={mpi['tree']}/modules/Core\n"
        f"module load mvapich-stack/{mpi['release']} {mpi['mpi'][0]['module']}\n"
        # after mvapich-stack, which brings the guard of the MPI's own tree
        f"module use {folder}/init/modules; module load launch-guard\n"
    )

    def run(lines: str) -> tuple[int, str]:
        (folder / "job.sh").write_text(loads + lines)
        done = subprocess.run(
            [sys.executable, str(LOOPBACK), "-n", "2", "--", "bash", "job.sh"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, done.stdout + done.stderr

    for name, suffix in ((".", ""), ("open", ".openmpi")):  # Open MPI is the distribution's
        # with another MPI's module its libmpi.so would be linked
        unload = f"module unload {mpi['mpi'][0]['module']}; " if suffix else ""
        status, said = run(
            f"{unload}mkdir -p {name} && cd {name} && mpicc{suffix} -o c {CHECKS}/world.c &&\n"
            f"mpifort{suffix} -o fortran {RECIPE}/worldf.f90 &&\n"
            f"mpicc{suffix} -shared -fPIC -o plugin.so {folder}/plugin.c &&\n"
            f"cc -o plugin {folder}/opens.c -ldl"
        )
        assert status == 0, said
    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_tasks_that_are_each_alone_end_with_what_to_do(shell: Shell, program: str) -> None:
    status, said = shell(f"srun --mpi=none -n 2 ./{program} 2")
    assert status == 1, said
    assert said.count("srun started 2 tasks, and each is alone") == 1
    assert "start it with: srun --mpi=pmi2 -n RANKS ./PROGRAM" in said
    assert PROGRAMS[program].replace("N", "1") not in said


def test_it_is_said_where_slurm_ends_all_tasks_with_the_first(shell: Shell) -> None:
    late = "[ $SLURM_PROCID = 1 ] || sleep 2; exec ./c 2"
    status, said = shell(f"srun --mpi=none --kill-on-bad-exit=1 -n 2 sh -c '{late}'")
    assert status != 0, said
    assert said.count("srun started 2 tasks, and each is alone") == 1


def test_without_the_module_they_would_run(shell: Shell) -> None:
    status, said = shell("module unload launch-guard; srun --mpi=none -n 2 ./c 2")
    assert (status, said.count("rank 0 of 1")) == (0, 2), said


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_world_of_two_runs(shell: Shell, program: str) -> None:
    status, said = shell(f"srun --mpi=pmi2 -n 2 ./{program} 2")
    assert status == 0, said
    assert PROGRAMS[program].replace("N", "2") in said
    assert "launch-guard" not in said


@pytest.mark.parametrize("program", PROGRAMS)
def test_open_mpi_runs_and_is_stopped_alike(shell: Shell, program: str) -> None:
    # It ends by itself where it knows that srun started it, which SLURM_NODELIST tells it.
    alone = f"srun --mpi=none -n 2 env -u SLURM_NODELIST ./{program} 2"
    status, said = shell(f"cd open && srun --mpi=pmix -n 2 ./{program} 2 && {alone}")
    assert status == 1, said
    assert PROGRAMS[program].replace("N", "2") in said
    assert said.count("srun started 2 tasks, and each is alone") == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("srun --mpi=none -n 1 ./c 1", "rank 0 of 1"),
        ("salloc -n 2 mpiexec -n 1 ./c 1", "rank 0 of 1"),
        ("salloc -n 2 mpiexec -n 2 ./c 2", "rank 1 of 2"),
        ("./c 1", "rank 0 of 1"),
        ("srun --mpi=none -n 2 hostname", os.uname().nodename),
        # what opens no MPI and is no MPI program is left alone
        ("srun --mpi=none -n 2 true && ls plugin.c", "plugin.c"),
    ],
)
def test_nothing_else_is_stopped(shell: Shell, line: str, says: str) -> None:
    status, said = shell(line)
    assert status == 0, said
    assert says in said
    assert "launch-guard:" not in said
