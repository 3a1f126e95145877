"""What mpi-doctor makes of what it finds; tests/integration/test_doctor_runs.py runs it."""

from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "modulefiles"), str(TOP / "tests" / "reframe")]

import mpi_doctor  # noqa: E402
from mpi_doctor import LOOK, OK, WRONG  # noqa: E402

from mvstack.tree.modules import DOCTOR  # noqa: E402

MPI = {
    "product": "mvapich", "version": "4.0", "device": "ch4:ofi", "module": "mvapich/4.0-ofi",
    "fabric": "slingshot-11", "pmi": "pmi2", "launcher": "srun",
    "launch": "srun --mpi=pmi2 -n {ranks} {program}",
    "environment": {"FI_PROVIDER": {"value": "cxi"}}, "believe": {"provider": ["cxi"]},
}  # fmt: skip
PLAN = {"release": "2026.11", "tree": "/apps/stack", "job": {}, "mpi": [MPI]}


def states(found):
    """State and text of each finding; what is wrong says what to do."""
    found = list(found)
    assert all(one.fix for one in found if one.state == WRONG)
    return [(one.state, one.what) for one in found]


@pytest.mark.parametrize(
    ("line", "version", "told"),
    [
        ("gfortran -fallow-argument-mismatch -I/m/include -lmpi\n", "14\n", True),
        ("/usr/bin/gfortran-16 -I/m/include", "16.2.0", True),
        ("gfortran -fno-tree-sra -I/m/include", "14", False),
        ("gfortran -I/m/include", "13.3.0", False),
        ("ifx -I/m/include", "2025.1", False),
        ("", "", False),
    ],
)
def test_the_fortran_that_loses_what_is_received(line, version, told):
    found = states(mpi_doctor.fortran(line, version))
    assert [state for state, _ in found] == [LOOK] * told


def test_it_runs_on_the_python_of_rhel_8():
    for name in DOCTOR:
        if name.endswith(".py"):
            ast.parse((TOP / name).read_text(), feature_version=(3, 6))


def test_no_module_of_ours():
    mpi, found = mpi_doctor.module_of(PLAN, ["openmpi/5.0.7"])
    assert mpi is None
    assert found[0].fix == "module load mvapich-stack/2026.11 mvapich/4.0-ofi"


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ("openmpi/5.0.7", True), ("OpenMPI", True), ("intel-oneapi-mpi/2021.18", True),
        ("mvapich2-gdr/2.3.7", True), ("cray-mpich-abi/8.1", True),
        ("mvapich-stack/2026.11", False), ("gmvapich/.2026.11-ofi", False),
        ("mpich", True), ("mpi4py/4.0", False), ("mpiP/3.5", False), ("hdf5/1.14-openmpi", False),
        # EasyBuild's, RHEL's, those of Azure's images, of vendors, of OpenHPC
        ("OpenMPI/4.1.6-GCC-13.2.0", True), ("MPICH/4.0", True), ("mpi/openmpi-x86_64", True),
        ("mpi/mpich-x86_64", True), ("mpi/hpcx", True), ("intel/mpi/2021.10", True),
        ("intelmpi", True), ("spectrum-mpi/10.4", True), ("hpcx-mt/2.18", True), ("mpt/2.25", True),
        ("nvhpc-hpcx/24.5", True), ("openmpi3", True), ("mvapich/4.1-ucx", True),
    ],
)  # fmt: skip
def test_the_module_of_another_mpi(other, wrong):
    mpi, found = mpi_doctor.module_of(PLAN, ["mvapich/4.0-ofi", other])
    assert mpi is MPI
    assert [state for state, _ in states(found)] == [OK, WRONG][: 1 + wrong]


def test_another_mpicc_comes_first():
    found = states(mpi_doctor.commands(MPI, "/apps/stack", lambda name: f"/opt/other/bin/{name}"))
    assert found == [
        (WRONG, "mpicc is /opt/other/bin/mpicc, which is not of the loaded MPI"),
        (OK, "srun is /opt/other/bin/srun"),
    ]
    found = states(mpi_doctor.commands(MPI, "/apps/stack", lambda name: None))
    assert found == [(WRONG, "mpicc is not on PATH"), (WRONG, "srun is not on PATH")]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"FI_PROVIDER": "cxi"}, []),
        ({}, [(WRONG, "FI_PROVIDER is not set, and the module sets cxi")]),
        ({"FI_PROVIDER": "tcp"}, [(WRONG, "FI_PROVIDER is tcp, and the module sets cxi")]),
        (
            {"FI_PROVIDER": "shm"},
            [
                (
                    WRONG,
                    "FI_PROVIDER is shm, and the module sets cxi: MPI_Iprobe and MPI_Finalize may "
                    "hang over it (libfabric before 1.20)",
                )
            ],
        ),
        (
            {"FI_PROVIDER": "cxi", "FI_CXI_RX_MATCH_MODE": "software"},
            [(LOOK, "FI_CXI_RX_MATCH_MODE is software, and the module sets nothing")],
        ),
        (
            {"FI_PROVIDER": "cxi", "MPIR_CVAR_NOLOCAL": "1", "MPI_HOME": "/x", "FILE": "y"},
            [(WRONG, "MPIR_CVAR_NOLOCAL is 1, and the module sets nothing")],
        ),
    ],
)
def test_variables(environ, expected):
    assert states(mpi_doctor.variables(MPI, "/apps/stack", environ)) == expected
    provided = {**MPI, "provided": "/opt/cray"}
    assert states(mpi_doctor.variables(provided, "/apps/stack", environ)) == []


def test_a_tuned_table_is_named_by_its_place_in_the_tree():
    rows = {"MPIR_CVAR_X": {"value": "tuning/abc.json", "table": "collectives/x.json"}}
    mpi = {**MPI, "environment": {}, "tuning": rows}
    right = "/apps/stack/rendered/tuning/abc.json"
    assert states(mpi_doctor.variables(mpi, "/apps/stack", {"MPIR_CVAR_X": right})) == []
    found = list(mpi_doctor.variables(mpi, "/apps/stack", {}))
    assert [one.fix for one in found] == ["export MPIR_CVAR_X=" + right]


@pytest.mark.parametrize(
    ("fabric", "locked", "shared", "ptrace", "expected"),
    [
        ("slingshot-11", None, None, 0, []),
        ("slingshot-11", 65536, 1 << 30, 0, [WRONG]),
        ("tcp", 65536, 1 << 30, 0, []),
        ("tcp", None, 1 << 20, 0, [WRONG]),
        ("shm", None, 1 << 30, 1, [WRONG]),
    ],
)
def test_limits(fabric, locked, shared, ptrace, expected):
    mpi = {**MPI, "fabric": fabric}
    found = states(mpi_doctor.limits(mpi, True, locked, shared, ptrace))
    assert [state for state, _ in found] == expected


def test_a_login_node_may_lock_little_memory():
    found = list(mpi_doctor.limits(MPI, False, 65536, None, 0))
    assert [(one.state, one.fix) for one in found] == [(LOOK, mpi_doctor.AGAIN)]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SLURM_JOB_ID": "7"}, False),  # a shell of salloc
        ({"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1"}, True),
        ({"PBS_JOBID": "7"}, True),
        ({"LSB_JOBID": "7"}, True),
        ({"FLUX_URI": "local:///run/flux"}, True),
        ({}, False),
    ],
)
def test_a_compute_node_is_known_by_what_the_scheduler_sets_there(environ, expected):
    assert mpi_doctor.in_a_job({"job": {"submit": "sbatch job.sh"}}, environ) is expected
    assert mpi_doctor.in_a_job({"job": {}}, environ)  # no scheduler: programs run here


def test_mvapich_4_ends_where_it_may_not_read_a_neighbour(monkeypatch):
    """Seen of 4.0 under qemu-user, which has no process_vm_readv; without CMA all was right."""
    found = states(mpi_doctor.limits(MPI, True, None, None, 1))
    assert found == [(WRONG, "ptrace_scope is 1: programs end at large messages within a node")]
    for other in ({"device": "ch4:ucx"}, {"product": "mpich"}):
        found = states(mpi_doctor.limits({**MPI, **other}, True, None, None, 1))
        assert [state for state, _ in found] == [LOOK]
    monkeypatch.setenv("MPIR_CVAR_CH4_CMA_ENABLE", "0")
    assert [one for one, _ in states(mpi_doctor.limits(MPI, True, None, None, 1))] == [LOOK]


@pytest.mark.parametrize(
    ("gpu", "in_job", "there", "state"),
    [
        ("none", True, False, None),
        ("nvidia", True, True, OK),
        ("nvidia", True, False, WRONG),
        ("amd-mi300a", False, False, LOOK),
    ],
)
def test_an_mpi_for_gpus_needs_their_driver(gpu, in_job, there, state):
    found = states(mpi_doctor.gpus(MPI | {"gpu": gpu}, in_job, lambda path: there))
    assert [one for one, _ in found] == [state] * (state is not None)


def test_a_program_of_cuda_on_a_node_without_its_driver():
    found = mpi_doctor.linked("./a", MPI, "/apps/stack", "\tlibcuda.so.1 => not found\n")
    assert found[0].state == WRONG and "driver" in found[0].fix


def test_a_login_node_may_lack_the_adapter_and_a_compute_node_may_not():
    for in_job, names, state in ((True, [], WRONG), (False, [], LOOK), (True, ["cxi0"], OK)):
        found = states(mpi_doctor.devices(MPI, in_job, lambda kind, names=names: names))
        assert [one for one, _ in found] == [state]
    assert states(mpi_doctor.devices({**MPI, "fabric": "tcp"}, True, lambda kind: [])) == []


# Slurm 22.05's words, and those of 23.11
LISTS = ("MPI plugin types are...\n\tnone\n\tpmi2\n", "srun: MPI types are...\nsrun: pmi2\n")


@pytest.mark.parametrize("printed", LISTS)
def test_the_pmi_of_srun(printed):
    assert states(mpi_doctor.slurm(MPI, printed)) == []
    found = states(mpi_doctor.slurm({**MPI, "pmi": "pmix"}, printed))
    assert found == [(WRONG, "srun has no pmix: N tasks would be N worlds of one rank")]
    assert states(mpi_doctor.slurm({**MPI, "launcher": "hydra", "pmi": "pmix"}, printed)) == []


def test_an_srun_that_finds_no_configuration():
    """Slurm 22.05 without slurm.conf."""
    last = "srun: fatal: Could not establish a configuration source"
    printed = f"srun: error: fetch_config: DNS SRV lookup failed\n{last}\n"
    found = states(mpi_doctor.slurm(MPI, printed))
    assert found == [(LOOK, "srun does not list its PMIs: " + last)]
    assert states(mpi_doctor.slurm(MPI, "\n")) == []


def test_ranks_that_wait_for_one_that_died():
    config = "KillOnBadExit           = {}\nKillWait = 30 sec\nWaitTime                = {} sec\n"
    found = states(mpi_doctor.waiting(config.format(0, 0), {}))
    assert found == [
        (LOOK, "when one rank crashes, srun leaves the others waiting until the job's time limit")
    ]
    assert states(mpi_doctor.waiting(config.format(1, 0), {})) == []
    assert states(mpi_doctor.waiting(config.format(0, 60), {})) == []
    assert states(mpi_doctor.waiting(config.format(0, 0), {"SLURM_KILL_BAD_EXIT": "1"})) == []
    assert states(mpi_doctor.waiting(config.format(0, 0), {"SLURM_WAIT": "60"})) == []
    assert states(mpi_doctor.waiting("", {})) == []


OURS = "\tlibmpi.so.12 => /apps/stack/software/MVAPICH/lib/libmpi.so.12 (0x1)\n"


@pytest.mark.parametrize(
    ("ldd", "expected"),
    [
        (OURS, [(OK, "a.out loads /apps/stack/software/MVAPICH/lib/libmpi.so.12")]),
        (
            OURS + "\tlibmpi.so.40 => /usr/lib/libmpi.so.40 (0x2)\n",
            [
                (WRONG, "a.out loads 2 MPIs: /apps/stack/software/MVAPICH/lib/libmpi.so.12, "
                 "/usr/lib/libmpi.so.40"),
                (WRONG, "a.out loads /usr/lib/libmpi.so.40, which is not the loaded MPI"),
            ],
        ),
        ("\tlibmpi.so.40 => not found\n", [(WRONG, "a.out does not find libmpi.so.40")]),
        ("\tlibmpicxx.so.12 => /usr/lib/libmpicxx.so.12\n", [(LOOK, "a.out uses no MPI library")]),
        ("\tnot a dynamic executable\n",
         [(LOOK, "a.out has no shared libraries: is it a script, or static?")]),
    ],
)  # fmt: skip
def test_a_program(ldd, expected):
    assert states(mpi_doctor.linked("a.out", MPI, "/apps/stack", ldd)) == expected


@pytest.mark.parametrize(
    ("soname", "is_one"),
    [
        *((name, True) for name in (
            "libmpi_gnu_123.so.12", "libmpi_intel.so.12", "libmpi_nvidia.so.12", "libmpi_ibm.so.3",
            "libmpi_cray.so.12", "libmpi_abi.so.0", "libmpi_mt.so.4", "libmpich_gnu_51.so.3",
            "libmpich.so.12", "libmpi.so",
        )),
        *((name, False) for name in (
            "libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpifort.so.12",
            "libmpi_ibm_mpifh.so.3", "libmpifort_gnu_123.so.12", "libmpi_gtl_cuda.so.0",
        )),
    ],
)  # fmt: skip
def test_the_library_of_another_mpi(soname, is_one):
    found = states(mpi_doctor.linked("a", MPI, "/apps/stack", f"\t{soname} => /opt/x/{soname}\n"))
    other = (WRONG, f"a loads /opt/x/{soname}, which is not the loaded MPI")
    assert found == [other if is_one else (LOOK, "a uses no MPI library")]


def both(provider="cxi", sent=0):
    ranks = "".join(f"rank {n} on n{n}: {sent} of 33554432 bytes over TCP\n" for n in (0, 1))
    return f"libfabric provider: {provider} - x\n{ranks}"


LDD = "\tlibucp.so.0 => {} (0x00007f)\n\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x0)\n"


@pytest.mark.parametrize(
    ("provision", "beneath", "loaded", "wrong"),
    [
        ("built", "", "/apps/stack/software/UCX/1.20.0-GCC-13.3.0/lib/libucp.so.0", ""),
        ("built", "", "/usr/lib64/libucp.so.0", "planned was that below /apps/stack"),
        ("external", "/usr", "/usr/lib64/libucp.so.0", ""),
        ("external", "/usr", "/opt/hpcx/ucx/lib/libucp.so.0", "planned was that below /usr"),
        ("external", "", "/opt/hpcx/ucx/lib/libucp.so.0", ""),
    ],
)
def test_another_ucx_than_the_mpi_was_built_over(provision, beneath, loaded, wrong):
    under = {"library": "ucx", "provision": provision, "variants": ""}
    mpi = MPI | {"transport": under, "believe": MPI["believe"] | {"beneath": beneath}}
    where = "/apps/stack", "/apps/stack/software/MVAPICH/4.0"

    def ldd(libmpi):
        return LDD.format(loaded)

    found = list(mpi_doctor.beneath(mpi, *where, ldd))
    assert [one.state for one in found] == ([WRONG] if wrong else [])
    if wrong:
        assert wrong in found[0].what and f"would load {loaded};" in found[0].what
        assert found[0].fix.startswith("look at LD_LIBRARY_PATH")
    provided = mpi | {"provided": "/opt/mvapich"}
    assert not list(mpi_doctor.beneath(provided, *where, ldd))
    assert not list(mpi_doctor.beneath(MPI, *where, ldd))  # a plan of before
    for home in ("", "/opt/mpich"):  # the shell does not say, or names another MPI
        assert not list(mpi_doctor.beneath(mpi, where[0], home, ldd))


def test_a_library_beneath_the_mpi_that_is_not_found(tmp_path):
    tree = tmp_path / "software"
    files = tree / "lib" / "libmpi.so.12", tree / "lib" / "libucp.so.0"
    files[0].parent.mkdir(parents=True)
    for file, needs in zip(files, (b"\0libucp.so.0\0", b"\0libucs.so.0\0"), strict=True):
        file.write_bytes(b"\x7fELF" + needs)
    ldd = f"\tlibucp.so.0 => {files[1]} (0x1)\n" + 2 * "\tlibucs.so.0 => not found\n"
    under = {"library": "ucx", "provision": "built", "variants": ""}
    mpi = MPI | {"transport": under, "believe": {"soname": "libmpi.so.12"}}
    (found,) = mpi_doctor.beneath(mpi, str(tree), str(tree), lambda _: ldd)
    assert found.what.startswith(f"libucs.so.0 is not found, and {files[1]} needs it")
    assert found.fix.startswith("module load mvapich/4.0-ofi again")
    # the driver of GPUs is another finding's
    assert not list(
        mpi_doctor.beneath(mpi, str(tree), str(tree), lambda _: "\tlibcuda.so.1 => not found\n")
    )


def test_two_ranks():
    assert states(mpi_doctor.ran(MPI, both(), 0)) == [(OK, "two ranks ran; in use: cxi")]
    found = states(mpi_doctor.ran(MPI, both("tcp;ofi_rxm", 33554432), 0))
    assert [state for state, _ in found] == [WRONG, WRONG]
    assert "the provider is ofi_rxm, tcp, tcp;ofi_rxm; planned was cxi" in found[0][1]
    assert "go over TCP" in found[1][1]
    alone = both().replace("rank 1", "rank 0")
    assert "world of its own" in states(mpi_doctor.ran(MPI, alone, 0))[0][1]
    assert "exit status 124" in states(mpi_doctor.ran(MPI, "Killed", 124))[0][1]


def test_a_folder_into_which_nothing_can_be_put(monkeypatch):
    monkeypatch.chdir("/proc")
    (found,) = mpi_doctor.run_two(MPI, "two.c", "hostname")
    assert found.state == WRONG and found.fix.startswith("cd to a folder of yours")


def test_a_name_that_cannot_be_printed(tmp_path, monkeypatch):
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "plan.json").write_text(json.dumps(PLAN | {"release": "é\udce9"}))
    monkeypatch.setattr(mpi_doctor, "HERE", str(tmp_path / "share" / "mpi-doctor"))
    monkeypatch.setattr(sys, "argv", ["mpi-doctor"])
    stdout = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.delenv("LOADEDMODULES", raising=False)
    assert mpi_doctor.main() == 1
    assert b"module load mvapich-stack/\\xe9\\udce9 " in stdout.buffer.getvalue()
