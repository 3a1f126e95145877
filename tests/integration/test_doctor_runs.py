"""mpi-doctor in a shell with a real MPI loaded: nothing is wrong, and each fault is told."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checks_tree import LMOD, mpi_here, without_transport
from faults import caught

from mvstack.tree.modules import install_doctor

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[1] / "reframe" / "src"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    return mpi_here(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def doctor(plan, tmp_path):
    """Run lines of shell with the MPI loaded and this version's mpi-doctor; status and output.

    What it says of a ``fault`` goes into docs/doctor.md (faults.py).
    """
    stack = tmp_path / "stack"
    (stack / "records").mkdir(parents=True)
    (stack / "records" / "plan.json").write_text(json.dumps(plan))
    install_doctor(stack)

    module = f"mvapich-stack/{plan['release']} {plan['mpi'][0]['module']}"

    def run(lines, load=module, tree="", fault=""):
        modules = f"{tree or plan['tree']}/modules/Core"
        script = (
            f"source {LMOD}; export MODULEPATH={modules}; module load {load}\n"
            f"PATH={stack}/bin:$PATH\n{lines}"
        )
        done = subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert not done.stderr, done.stderr
        if fault:
            wrong = re.findall(r"^WRONG (.*(?:\n      fix:.*)?)", done.stdout, re.M)
            said = "; ".join(wrong[:2]).replace("\n     ", ";")
            caught(fault, ["mpi-doctor"] * bool(wrong), said, plan)
        return done.returncode, done.stdout

    return run


def test_nothing_is_wrong_and_two_ranks_run(doctor):
    status, said = doctor(f"mpicc -o world {SOURCES}/world.c; mpi-doctor --run ./world")
    assert status == 0, said
    assert "ok    ./world loads /" in said
    assert "ok    two ranks ran; in use: " in said
    assert said.endswith("nothing is wrong\n")


def test_what_two_ranks_printed_elsewhere_is_judged(doctor, plan, tmp_path):
    # an MPI over EFA, whatever the one of this machine goes over
    believe = plan["mpi"][0]["believe"] | {"device": "ch4:ofi", "provider": ["efa"]}
    over_efa = plan["mpi"][0] | {"device": "ch4:ofi", "believe": believe}
    elsewhere = plan | {"mpi": [over_efa, *plan["mpi"][1:]]}
    (tmp_path / "stack" / "records" / "plan.json").write_text(json.dumps(elsewhere))
    ranks = "".join(f"rank {n} on n{n}: {{}} of 33554432 bytes over TCP\n" for n in (0, 1))
    for provider, sent, right in (("efa", 0, 0), ("efa", 33554432, 1), ("tcp", 0, 1)):
        printed = f"libfabric provider: {provider}\n" + ranks.format(sent, sent)
        (tmp_path / "printed").write_text(printed)
        status, said = doctor("mpi-doctor --printed printed")
        assert status == right, said


def test_messages_over_tcp(doctor, plan):
    name, value = {
        "ch4:ofi": ("MPIR_CVAR_NOLOCAL", "1"),
        "ch4:ucx": ("UCX_TLS", "tcp,self"),
    }[plan["mpi"][0]["device"]]
    fault = "shared memory taken away by a variable of the user's"
    status, said = doctor(f"{name}={value} mpi-doctor --run", fault=fault)
    assert status == 1
    row = plan["mpi"][0].get("environment", {}).get(name)
    sets, fix = (
        (row["value"], f"export {name}={row['value']}") if row else ("nothing", f"unset {name}")
    )
    assert f"WRONG {name} is {value}, and the module sets {sets}\n      fix: {fix}" in said
    assert "WRONG messages between ranks of one node go over TCP" in said


def test_no_module_is_loaded(doctor, plan):
    status, said = doctor("mpi-doctor", load="", fault="no MPI is loaded")
    assert status == 1
    assert f"fix: module load mvapich-stack/{plan['release']} {plan['mpi'][0]['module']}" in said


def test_another_libmpi_and_another_mpicc(doctor, tmp_path):
    # Debian's MPICH calls its library libmpich.so.12
    status, said = doctor(
        f"mpicc -o world {SOURCES}/world.c\n"
        "real=$(ldd world | sed -nE 's/.*libmpi(ch)?[.]so.* => (\\S+).*/\\2/p')\n"
        "mkdir other; cp $real other/; printf '#!/bin/sh\\n' >other/mpicc\n"
        "chmod +x other/mpicc; PATH=$PWD/other:$PATH LD_PRELOAD= "
        f"LD_LIBRARY_PATH=$PWD/other mpi-doctor ./world; status=$?\n"
        "readelf -d world | grep -c 'RPATH' >rpath; exit $status",
        fault="another mpicc first on PATH, and another libmpi",
    )
    assert status == 1
    assert f"WRONG mpicc is {tmp_path}/other/mpicc, which is not of the loaded MPI" in said
    # an RPATH, unlike a RUNPATH, goes before LD_LIBRARY_PATH
    if (tmp_path / "rpath").read_text().strip() == "0":
        assert "which is not the loaded MPI" in said


def test_a_transport_library_that_is_not_there(doctor, plan, tmp_path):
    _, mpicc = doctor("command -v mpicc")
    lacking = without_transport(plan, Path(mpicc).parents[1], tmp_path)
    (tmp_path / "stack" / "records" / "plan.json").write_text(json.dumps(lacking))
    home = "MPI_HOME=$(dirname $(dirname $(command -v mpicc)))"  # Debian's does not say
    fault = "libucp or libfabric is not there, in a user's shell"
    status, said = doctor(f"{home} mpi-doctor", tree=lacking["tree"], fault=fault)
    assert status == 1 and said.endswith("\n1 wrong\n"), said
    name = {"ucx": "libucp.so.9", "libfabric": "libfabric.so.9"}
    name, soname = name[plan["mpi"][0]["transport"]["library"]], plan["mpi"][0]["believe"]["soname"]
    assert f"WRONG {name} is not found, and {lacking['tree']}/" in said
    assert f"/lib/{soname} needs it: no program of this MPI starts\n      fix: the staff: " in said


def test_a_launcher_that_reads_a_file_of_hosts(doctor, plan, tmp_path):
    """The launcher, mpirun_rsh by name, is the loaded MPI's own behind a script."""
    launch = "mpirun_rsh -export -np {ranks} -hostfile hosts {program}"
    mpi, job = plan["mpi"][0] | {"launch": launch}, {"hosts": "cat; hostname"}
    elsewhere = plan | {"mpi": [mpi, *plan["mpi"][1:]], "job": job}
    (tmp_path / "stack" / "records" / "plan.json").write_text(json.dumps(elsewhere))
    (tmp_path / "mpirun_rsh").write_text(
        '#!/bin/sh\n[ "$(cat hosts)" = "$(hostname)" ] && exec mpiexec -n $3 $6\n'
    )
    _, said = doctor("chmod +x mpirun_rsh; PATH=$PATH:$PWD; mpi-doctor --run; ls -A")
    assert "ok    two ranks ran; in use: " in said
    assert ".mpi-doctor" not in said  # nothing is left


def test_a_shell_that_leaves_the_programs_folder_out(doctor):
    status, said = doctor("PYTHONSAFEPATH=1 mpi-doctor")
    assert status == 0, said


def test_nobody_reads_what_it_prints(doctor):
    assert doctor("(sleep 1; mpi-doctor; echo $? >&3) 3>status | true; cat status") == (0, "1\n")


def test_it_says_how_it_is_used(doctor):
    status, said = doctor("mpi-doctor --help")
    assert status == 0 and "mpi-doctor ./PROGRAM" in said
    assert not shutil.which("mpi-doctor")
