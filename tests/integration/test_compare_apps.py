"""`mvstack compare --app`: an installed program over its own MPI, and over others as they stand."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import small_omb
from measured_tree import measured
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.measure import applications
from mvstack.support.errors import InvalidInput
from mvstack.tree.records import Records

# It says what libmpi each rank has, and fails where a variable of another MPI is left.
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size, sum;
    Dl_info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    dladdr((void *)MPI_Init, &info);
    if (rank == 0)
        printf("sum %d of %d, over %s, %s\ntook %f s\nrate %f Mstep/s\n", sum, size, info.dli_fname,
               getenv("MPIR_CVAR_DEVICE_COLLECTIVES") ? "set" : "unset", size * 0.5, 3.0);
    MPI_Finalize();
    return 0;
}
"""
CHECK = '''
"""A ring."""
from pathlib import Path
import reframe as rfm
from reframe.core.builtins import run_before
import judging
from app_mixin import AppMixin


@rfm.simple_test
class Ring(rfm.RunOnlyRegressionTest, AppMixin):
    """A ring."""

    software = "ring"
    tags = {"app", "ring"}
    ranks = 2

    @run_before("run")
    def prepare(self):
        self.trace_loader("ring")


def complaints(text, ranks):
    with open("SEEN", "a") as seen:
        seen.write(text)
    return judging.equal("size", judging.number(r"^sum \\d+ of (\\d+)", text), WANTED or ranks)


def figures(text):
    return {
        "time": (judging.number(r"^took (\\S+) s", text), "s"),
        "rate": (judging.number(r"^rate (\\S+) ", text), "Mstep/s"),
    }
'''
Said = tuple[int, dict[str, Any]]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A root with the program `ring`, linked with its MPI, and a site with the check of it."""
    plan = measured(tmp_path / "root")
    tree = Path(plan["tree"])
    row = plan["mpi"][0]
    ring = tree / "software" / "ring"
    (ring / "bin").mkdir(parents=True)
    (ring / "ring.c").write_text(SOURCE)
    words = ["mpicc.mpich", str(ring / "ring.c"), "-o", str(ring / "bin" / "ring"), "-ldl"]
    subprocess.run(words, check=True)
    module = tree / "modules" / "Core" / "ring" / "1.0.lua"
    module.parent.mkdir()
    module.write_text(f'prepend_path("PATH", "{ring}/bin")\n')
    package = {"name": "ring", "version": "1.0", "module": "ring/1.0", "mpi": row["module"]}
    plan["packages"] = [package]
    (tree / "records" / "plan.json").write_text(json.dumps(plan))
    small_omb.source(tmp_path / "omb")
    checked(tmp_path, 0)
    return tmp_path


def checked(world: Path, wanted: int) -> None:
    """The site's check, which wants so many ranks; 0: as many as were started."""
    (world / "site" / "checks").mkdir(parents=True, exist_ok=True)
    text = CHECK.replace("SEEN", str(world / "seen")).replace("WANTED", str(wanted))
    (world / "site" / "checks" / "ring.py").write_text(text)


def compared(world: Path, *more: str) -> dict[str, Any]:
    words = ["--root", str(world / "root"), "--rounds", "1"]
    words += ["--to", str(world / "to"), *more, "--json"]
    state = {"XDG_STATE_HOME": str(world / "state"), "MPIR_CVAR_DEVICE_COLLECTIVES": "all"}
    state["MVSTACK_SITE"] = ""  # --site sets it
    site = ["--site", str(world / "site"), "compare", "local"]
    done = CliRunner().invoke(app, [*site, *words], env=state)
    assert done.exit_code in (0, 1), done.output + repr(done.exception)
    data: dict[str, Any] = json.loads(done.stdout)
    assert done.exit_code == (0 if data["operations"] else 1), done.output
    return data


def test_an_application_runs_over_each_mpi_of_its_soname(world: Path) -> None:
    peers = ["--peer", "system:mpich", "--peer", "system:openmpi"]
    data = compared(world, "--app", "ring", *peers)
    ours, mpich, openmpi = (one["name"] for one in data["mpis"])
    (one,) = data["operations"]
    assert one["op"] == "ring 1.0" and set(one["figures"]) == {ours, mpich}
    figures = {row["size"]: row["value"] for row in one["figures"][mpich]}
    assert figures == {"rate in Mstep/s": 3.0, "time in s": 1.0}
    assert one["ahead"][ours]["mean"]["value"] == 1.0
    (fault,) = data["faults"]
    assert (
        fault["mpi"] == openmpi
        and "it has libmpi.so.40, and the program wants libmpich.so.12: another ABI" in fault["why"]
    )
    seen = (world / "seen").read_text().splitlines()
    over = [line for line in seen if line.startswith("sum 1 of 2, over ")]
    own = [line for line in over if line.endswith("/local/software/mpich/lib/libmpich.so.12, set")]
    other = [line for line in over if "/app-libraries/libmpich.so.12, unset" in line]
    # by value and in one round; what our module sets is not set for a peer
    assert len(own) == len(other) == 2


def test_a_checkout_may_lie_below_a_path_with_a_space(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = world / "our stacks" / "bound.sh"
    bound.parent.mkdir()
    bound.write_bytes(applications.BOUND.read_bytes())
    monkeypatch.setattr(applications, "BOUND", bound)
    data = compared(world, "--app", "ring")
    assert data["faults"] == [] and data["operations"][0]["figures"]


def test_an_application_runs_on_other_ranks_beside_operations(world: Path) -> None:
    omb = ["--omb", str(world / "omb")]
    data = compared(world, "--app", "ring", "--ops", "init", "--ranks", "3", *omb)
    assert [one["op"] for one in data["operations"]] == ["init", "ring 1.0"]
    (rows,) = data["operations"][1]["figures"].values()
    assert {row["size"]: row["value"] for row in rows}["time in s"] == 1.5


def test_a_wrong_answer_is_told_and_not_timed(world: Path) -> None:
    checked(world, 7)
    data = compared(world, "--app", "ring")
    assert data["operations"] == []
    assert "ring 1.0 on 2 ranks: size is 2.0, expected 7" in data["faults"][0]["why"]


def test_an_application_that_is_not_there_is_refused(world: Path) -> None:
    words = ["compare", "local", "--root", str(world / "root"), "--app", "rink"]
    done = CliRunner().invoke(
        app, ["--site", str(world / "site"), *words], env={"MVSTACK_SITE": ""}
    )
    assert "no such application" in str(done.exception)
    assert isinstance(done.exception, InvalidInput)
    assert done.exception.problems[0].todo == "--app ring"


def test_a_program_that_holds_the_path_of_its_mpi_is_not_measured_over_another(world: Path) -> None:
    """So Spack builds them: it would run over ours, under the name of the peer."""
    ring = world / "root" / "2026.11" / "local" / "software" / "ring"
    path = f"-Wl,--disable-new-dtags,-rpath,{ring.parent}/mpich/lib"
    words = ["mpicc.mpich", str(ring / "ring.c"), "-o", str(ring / "bin" / "ring"), "-ldl", path]
    subprocess.run(words, check=True)
    data = compared(world, "--app", "ring", "--peer", "system:mpich")
    (fault,) = data["faults"]
    assert (
        fault["mpi"] == "system:mpich"
        and "of the MPI that is measured: a program with an RPATH" in fault["why"]
    )
    (one,) = data["operations"]
    assert [*one["figures"]] == [data["mpis"][0]["name"]]


def test_a_check_that_changed_is_asked_again(world: Path) -> None:
    compared(world, "--app", "ring")
    checked(world, 7)
    assert compared(world, "--app", "ring")["operations"] == []


def test_what_is_installed_beside_it_changes_nothing(world: Path) -> None:
    """All rounds were lost whenever another package was installed."""
    tree = world / "root" / "2026.11" / "local"
    file = tree / "records" / "plan.json"
    plan = json.loads(file.read_text())
    plan["packages"][0]["easyconfig"] = "ring-1.0.eb"
    file.write_text(json.dumps(plan))
    records = Records(tree)
    runs = []
    for key, content in (("ring", "first"), ("other", "new"), ("ring", "second")):
        records.built(f"{key}-1.0.eb", content)
        compared(world, "--app", "ring")
        runs.append((world / "seen").read_text().count("sum 1 of 2"))
    assert runs == [2, 2, 4]


def test_the_version_that_is_named_is_measured(world: Path) -> None:
    tree = world / "root" / "2026.11" / "local"
    other = tree / "software" / "ring2"
    (other / "bin").mkdir(parents=True)
    text = (
        (tree / "software" / "ring" / "ring.c")
        .read_text()
        .replace("size * 0.5, 3.0", "size * 50.0, 0.0")
    )
    (other / "ring.c").write_text(text)
    subprocess.run(
        ["mpicc.mpich", str(other / "ring.c"), "-o", str(other / "bin" / "ring"), "-ldl"],
        check=True,
    )
    (tree / "modules" / "Core" / "ring" / "2.0.lua").write_text(
        f'prepend_path("PATH", "{other}/bin")\n'
    )
    file = tree / "records" / "plan.json"
    plan = json.loads(file.read_text())
    plan["packages"].append({**plan["packages"][0], "version": "2.0", "module": "ring/2.0"})
    file.write_text(json.dumps(plan))
    data = compared(world, "--app", "ring 2.0")
    (fault,) = data["faults"]  # the rate of that one is zero, which is no figure
    assert fault["op"] == "ring 2.0" and "a figure is not above zero: rate" in fault["why"]


def without_fortran(folder: Path) -> Path:
    """Debian's MPICH with libmpich alone, as the one that PyPI has."""
    library = Path("/usr/lib/x86_64-linux-gnu/libmpich.so.12")
    for name, file in {
        "bin/mpicc": "/usr/bin/mpicc.mpich",
        "bin/mpiexec": "/usr/bin/mpiexec.hydra",
        "bin/hydra_pmi_proxy": "/usr/bin/hydra_pmi_proxy",
        f"lib/{library.name}": library,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / name)
    return folder


def test_a_program_in_fortran_is_not_measured_over_an_mpi_without_it(world: Path) -> None:
    """With a RUNPATH, or Debian's MPICH, the loader finds the library of another MPI for it."""
    tree = world / "root" / "2026.11" / "local" / "software"
    ring = tree / "ring"
    words = ["mpicc.mpich", str(ring / "ring.c"), "-o", str(ring / "bin" / "ring"), "-ldl"]
    subprocess.run([*words, "-Wl,--no-as-needed", "-lmpichfort"], check=True)
    data = compared(world, "--app", "ring", "--peer", f"prefix:{without_fortran(world / 'bare')}")
    (fault,) = data["faults"]
    assert (
        fault["mpi"].startswith("prefix:")
        and "the MPI that is measured comes without libmpifort: a program in Fortran cannot run "
        "over it"
        in fault["why"]
    )
    (one,) = data["operations"]
    assert [*one["figures"]] == [data["mpis"][0]["name"]]


def test_each_build_of_ours_runs_what_is_installed_over_the_first(world: Path) -> None:
    """Applications are built with the first MPI build of a partition alone."""
    tree = world / "root" / "2026.11" / "local"
    file = tree / "records" / "plan.json"
    plan = json.loads(file.read_text())
    other = {**plan["mpi"][0], "module": "mpich/4.0.2-ofi"}
    plan["mpi"].append(other)
    file.write_text(json.dumps(plan))
    shutil.copytree(tree / "software" / "mpich", tree / "software" / "other", symlinks=True)
    folder = tree / "modules" / "Core"
    text = (folder / "mpich" / "4.0.2-ucx.lua").read_text()
    changed = text.replace("software/mpich", "software/other").replace('"none"', '"percoll"')
    (folder / "mpich" / "4.0.2-ofi.lua").write_text(changed)
    data = compared(world, "--app", "ring")
    assert data["faults"] == []
    assert [*data["operations"][0]["figures"]] == ["mpich/4.0.2-ucx", "mpich/4.0.2-ofi"]
    seen = (world / "seen").read_text().splitlines()
    assert sum("/software/other/lib/libmpich.so.12, set" in line for line in seen) == 2


def test_the_files_of_one_that_failed_are_left_where_it_says(world: Path) -> None:
    """Another application over the same MPI took their folder."""
    text = (world / "site" / "checks" / "ring.py").read_text()
    for old, new in {"class Ring": "class Rong", '"ring"\n': '"rong"\n', "0 or ranks": "7"}.items():
        text = text.replace(old, new)
    (world / "site" / "checks" / "rong.py").write_text(text)
    file = world / "root" / "2026.11" / "local" / "records" / "plan.json"
    plan = json.loads(file.read_text())
    plan["packages"].append({**plan["packages"][0], "name": "rong"})
    file.write_text(json.dumps(plan))
    data = compared(world, "--app", "rong", "--app", "ring")
    (fault,) = data["faults"]
    assert fault["op"] == "rong 1.0"
    assert Path(fault["why"].partition("Its output is in ")[2].partition(";")[0]).is_dir()
