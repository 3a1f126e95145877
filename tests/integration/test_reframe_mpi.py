"""The checks that ship, on a real MPI: each fails when its subject is wrong.

That they pass as it is, is what `mvstack up` shows, and tests/whole/test_reframe_all_checks.py.
The MPI is the one that `mvstack install` made here, otherwise Debian's.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from checks_tree import LMOD, mpi_here, over_a_library, without_transport
from faults import caught

from mvstack.test.run import run_checks

HERE = Path(__file__).parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    found = mpi_here(tmp_path_factory.mktemp("tree"))
    return found | {"mpi": found["mpi"][:1]}


def in_module(plan, line):
    """What a line of shell prints with the MPI under test loaded."""
    core = f"{plan['tree']}/modules/Core"
    script = (
        f"source {LMOD}; export MODULEPATH={core}; "
        f"module load mvapich-stack/{plan['release']} {plan['mpi'][0]['module']}; {line}"
    )
    return subprocess.run(
        ["bash", "-c", script], stdout=subprocess.PIPE, text=True, check=True, timeout=100
    ).stdout


def prefix(plan):
    """The folder of the MPI under test, asked of its module."""
    return Path(in_module(plan, "command -v mpicc").strip()).parents[1]


@pytest.fixture
def check(plan, tmp_path):
    """Run the named checks (all of their parameters) with a changed plan; give cases by name.

    By which of them ``fault`` was told goes into docs/doctor.md (faults.py).
    """

    def run(
        *names, fault="", launch="", packages=None, limit="", gpu="none", version="", sets=None,
        of=None, fabric="", **believe,
    ):  # fmt: skip
        changed = copy.deepcopy(of or plan)
        entry = changed["mpi"][0]
        entry["environment"] = entry.get("environment", {}) if sets is None else sets
        entry["gpu"], entry["version"] = gpu, version or entry["version"]
        entry["fabric"] = fabric or entry["fabric"]
        entry["believe"] |= believe
        entry["launch"] = launch or entry["launch"]
        changed["packages"] = packages if packages is not None else []
        checks = tmp_path / "checks"
        shutil.rmtree(checks, ignore_errors=True)
        shutil.copytree(HERE.parent / "reframe", checks)
        for path in checks.glob("*.py"):
            if "simple_test" in path.read_text() and path.stem not in names:
                path.unlink()
        if limit:
            for source in (checks / "src" / f"{name}.c" for name in names):
                text = re.sub(r"SECONDS = \d+", f"SECONDS = {limit}", source.read_text())
                source.write_text(text)
        results = run_checks(changed, tmp_path / "out", [], checks=checks)
        cases = {case["check"]: case for case in results["cases"]}
        if fault:
            why = {name: case["why"] for name, case in cases.items() if case["result"] == "fail"}
            caught(fault, [*why], why[max(why)] if why else "", plan)
        return cases

    return run


def of_debian(plan):
    """Debian's MPICH 4.0.2 over UCX: MPI_Put and a fence bring wrong values in shared windows."""
    entry = plan["mpi"][0]
    return (entry["product"], entry["device"]) == ("mpich", "ch4:ucx")


def through(plan, *wrapper):
    """The plan's launch line with ``wrapper`` before the program."""
    return plan["mpi"][0]["launch"].replace("{program}", " ".join([*wrapper, "{program}"]))


def test_silent_singletons_fail_in_every_check(check, plan):
    multi = ("world", "hello", "mpi_io", "collectives", "identity", "benchmarks")
    cases = check(
        *multi,
        launch=through(plan, "env -u PMI_FD -u PMI_RANK -u PMI_SIZE"),
        fault="a launcher whose PMI the MPI does not speak: each rank is alone",
    )
    assert cases.pop("WorldSize 1")["result"] == "pass"
    assert {case["result"] for case in cases.values()} == {"fail"}
    for ranks in (2, 4):
        case = cases[f"WorldSize {ranks}"]
        assert f"PMI mismatch: {ranks} processes" in case["why"]
        assert "srun --mpi=list" in case["why"]
    for name in ("Collectives 2", "Identity"):
        assert "see the check WorldSize" in cases[name]["why"]


def test_fewer_ranks_than_asked_for_fail(check):
    cases = check("world", launch="mpiexec -n 1 {program}", fault="fewer ranks than were asked for")
    assert cases["WorldSize 1"]["result"] == "pass"
    assert "2 ranks were asked for" in cases["WorldSize 2"]["why"]


def test_ranks_that_outlive_an_error_are_named_and_ended(check, plan, tmp_path):
    """Hydra of MVAPICH 4.0 left them; here each rank leaves a process of its program's name."""
    wrapper = tmp_path / "leave"
    wrapper.write_text(
        "#!/bin/bash\n"
        """setsid bash -c 'exec -a "$0" sleep 100' "$1" >/dev/null 2>&1 &\n"""
        'echo "rank $PMI_RANK process $! on $(uname -n)"\nexec "$@"\n'
    )
    wrapper.chmod(0o755)
    fault = "ranks that run on after the program has ended by an error"
    cases = check("abort", launch=through(plan, str(wrapper)), fault=fault)
    for how, what in (("error", "an error"), ("abort", "an abort"), ("part", "an error in a part")):
        why = cases[f"ErrorEndsAllRanks {how}"]["why"]
        assert f"4 of 4 ranks ran on after the program had ended by {what}" in why
    left = subprocess.run(["pgrep", "-f", "^./ErrorEndsAllRanks.* 100$"], capture_output=True)
    assert left.stdout == b""


def test_ranks_that_compute_on_after_an_error_of_another_fail(check, plan, tmp_path):
    """As under srun, which leaves the others when a rank has ended."""
    launch = interposed(plan, tmp_path, "exit").replace(" -n ", " -disable-auto-cleanup -n ")
    fault = "a rank that ends by an error while the others compute on"
    why = check("abort", launch=launch, fault=fault)["ErrorEndsAllRanks part"]["why"]
    assert "an error in a part of the ranks, and the others ran on" in why


def test_programs_that_cannot_meet_through_a_port_fail(check, plan, tmp_path):
    """As over UCX, whose address has no room in a port's name: MPICH 4.0.2 is left out there."""
    over_ucx = plan["mpi"][0]["device"] == "ch4:ucx" and plan["mpi"][0]["product"] == "mpich"
    assert check("ports")["Ports"]["result"] == ("skip" if over_ucx else "pass")
    launch = interposed(plan, tmp_path, "open_port")
    fault = "MPI_Open_port fails"
    why = check("ports", launch=launch, version="5.0", fault=fault)["Ports"]["why"]
    assert "no port: " in why and "patch port-by-socket" in why


def test_children_that_do_not_come_fail(check, plan, tmp_path):
    over_ucx = plan["mpi"][0]["device"] == "ch4:ucx" and plan["mpi"][0]["product"] == "mpich"
    if over_ucx:
        assert check("spawn")["Spawn"]["result"] == "skip"
        return
    launch = interposed(plan, tmp_path, "spawn")
    fault = "MPI_Comm_spawn never returns"
    why = check("spawn", launch=launch, limit="4", fault=fault)["Spawn"]["why"]
    assert re.search(r"hung: rank \d waits in MPI_Comm_spawn for 4 s\. Programs that start", why)
    for way, said, fault in (
        ("REFUSES", "no children: ", "MPI_Comm_spawn fails"),
        ("LOSES", "wrong value of a ", "what a child sends is wrong"),
    ):
        line = launch.replace("env ", f"env {way}=1 ")
        why = check("spawn", launch=line, fault=fault)["Spawn"]["why"]
        assert why.startswith(said), why
    case = check("spawn", launch="srun -n {ranks} {program}")["Spawn"]
    assert case["result"] == "skip" and "srun waits for ever in MPI_Comm_spawn" in case["why"]


def test_threads_that_may_not_send_at_once_fail(check, plan, tmp_path):
    launch = interposed(plan, tmp_path, "threads")
    cases = check("threads", launch=launch, fault="MPI_Init_thread gives less than was asked for")
    why = cases.pop("Threads multiple")["why"]
    assert "asked for MPI_THREAD_MULTIPLE and gave MPI_THREAD_SERIALIZED" in why
    assert {case["result"] for case in cases.values()} == {"pass"}
    launch = launch.replace("env ", "env LOSES=1 ")
    fault = "what a rank's second thread receives is wrong in one element"
    why = check("threads", launch=launch, fault=fault)["Threads multiple"]["why"]
    assert "two threads of each rank sent at once: wrong: thread 1 of rank " in why
    assert "element 19999 of 20000" in why


def test_ranks_that_share_a_core_fail_while_another_is_idle(check, plan):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process may use one processor alone: none would be idle")
    first = min(os.sched_getaffinity(0))
    assert check("binding")["Binding"]["result"] == "pass"
    launch = through(plan, f"taskset -c {first}")
    fault = "both ranks on one core while another is idle (taskset -c 0)"
    why = check("binding", launch=launch, fault=fault)["Binding"]["why"]
    assert re.search(r"ranks 0, 1 on \S+ may run on core \d+ alone and take turns, while the", why)
    assert "Look for taskset or numactl" in why


def test_little_memory_to_lock_fails_where_an_adapter_needs_it(check, plan):
    cap = "--bounding-set=-ipc_lock --inh-caps=-ipc_lock" if os.geteuid() == 0 else "--no-new-privs"
    launch = through(plan, f"setpriv {cap} prlimit --memlock=65536:65536")
    case = check("identity", launch=launch)["Identity"]
    assert (case["result"], case["why"]) == ("pass", "")
    fault = "64 kB of memory to lock, with an adapter planned"
    why = check("identity", launch=launch, fabric="infiniband", fault=fault)["Identity"]["why"]
    assert "a rank may lock 64 kB of memory, and adapters for infiniband register" in why


def test_a_module_whose_path_is_wrong_fails(check, plan, tmp_path):
    """Its folder has the right mpicc, so that a program is built, and another MPI's mpiexec."""
    tree, wrong = tmp_path / "tree", tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "mpicc").symlink_to(prefix(plan) / "bin" / "mpicc")
    (wrong / "mpiexec").write_text("#!/bin/sh\nexit 1\n")
    (wrong / "mpiexec").chmod(0o755)
    shutil.copytree(f"{plan['tree']}/modules", tree / "modules", symlinks=True)
    for path in tree.glob("modules/**/*.lua"):
        text = path.read_text().replace(f"{plan['tree']}/modules", f"{tree}/modules")
        for was in ('pathJoin(root, "bin")', f'"{prefix(plan)}/bin"'):
            text = text.replace(was, f'"{wrong}"')
        path.write_text(text)
    module = plan | {"tree": str(tree)}
    fault = "an MPI's module whose PATH has another MPI's launcher"
    why = check("world", of=module, fault=fault)["WorldSize 2"]["why"]
    assert f"{wrong}/mpiexec is not the launcher of the MPI under test" in why
    launch = "mpiexec.of-the-stack -n {ranks} {program}"  # no other MPI's has this name
    fault = "an MPI's module whose PATH has not the MPI's folder"
    why = check("world", of=module, launch=launch, fault=fault)["WorldSize 2"]["why"]
    assert "of the plan's launch line is not on PATH: look at `module show " in why


def test_the_launcher_of_another_mpi_fails(check, plan, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    launcher = other / "mpiexec"
    launcher.write_text(f'#!/bin/sh\nexec {prefix(plan)}/bin/mpiexec "$@"\n')
    launcher.chmod(0o755)
    launch, fault = f"{launcher} -n {{ranks}} {{program}}", "another MPI's launcher"
    cases = check("world", launch=launch, fault=fault)
    assert "is not the launcher of the MPI under test" in cases["WorldSize 2"]["why"]


def test_another_version_or_device_than_planned_fails(check):
    version, fault = r"MPICH Version:\s+9\.9", "another version of the MPI than planned"
    case = check("identity", library_version=version, fault=fault)["Identity"]
    assert case["result"] == "fail"
    assert r"planned was MPICH Version:\s+9\.9" in case["why"]
    case = check("identity", device="ch4:none", fault="another device than planned")["Identity"]
    assert "planned was ch4:none" in case["why"]


def test_another_provider_or_transport_than_planned_fails(check, plan):
    netmod = plan["mpi"][0]["device"]
    kind = {"ch4:ofi": "provider", "ch4:ucx": "transports"}[netmod]
    fault = "another provider, or other transports, than planned"
    case = check("identity", fault=fault, **{kind: ["carrier_pigeon"]})["Identity"]
    assert case["result"] == "fail"
    assert "planned was carrier_pigeon" in case["why"]
    assert "not named" not in case["why"]


def test_another_variable_than_planned_fails(check, plan):
    """One line in a module put MPI on TCP, and 22 of 22 checks passed."""
    before = plan["mpi"][0].get("environment", {})
    sets = {"UCX_LOG_LEVEL": {"value": "info"}}
    fault = "an MPI's module that sets other variables than planned"
    case = check("identity", sets=sets, fault=fault)["Identity"]
    assert case["result"] == "fail"
    assert "UCX_LOG_LEVEL is not set, planned was info" in case["why"]
    for name, row in before.items():
        assert f"{name} is {row['value']}, planned was not to set it" in case["why"]


def test_messages_of_one_node_over_tcp_fail(check, plan):
    variables = {"ch4:ofi": "MPIR_CVAR_NOLOCAL=1", "ch4:ucx": "UCX_TLS=tcp,self"}
    slow = f"env {variables[plan['mpi'][0]['device']]}"
    fault = "shared memory taken away by a variable: TCP between ranks of one node"
    case = check("identity", transports=[], launch=through(plan, slow), fault=fault)["Identity"]
    assert case["result"] == "fail"
    assert "messages between ranks of one node go over TCP" in case["why"]


def test_another_soname_than_planned_fails(check):
    case = check("identity", soname="libmpi.so.99", fault="another soname than planned")["Identity"]
    assert "whose soname is not libmpi.so.99" in case["why"]


@pytest.fixture
def decoy(plan, tmp_path):
    """A copy of libmpi outside the tree, as LD_LIBRARY_PATH might find one."""
    real = (prefix(plan) / "lib" / plan["mpi"][0]["believe"]["soname"]).resolve()
    return Path(shutil.copy(real, tmp_path / plan["mpi"][0]["believe"]["soname"]))


def test_another_libmpi_than_the_one_under_test_fails(check, plan, decoy):
    launch, fault = through(plan, f"env LD_PRELOAD={decoy}"), "another libmpi by LD_PRELOAD"
    cases = check("identity", "benchmarks", launch=launch, fault=fault)
    assert {case["result"] for case in cases.values()} == {"fail"}
    for case in cases.values():
        assert f"loaded {decoy}, which is not the MPI under test" in case["why"]


def test_another_ucx_or_libfabric_than_the_mpi_was_built_over_fails(check, plan, tmp_path):
    stem = {"ucx": "libucp", "libfabric": "libfabric"}[over_a_library(plan)]
    libmpi = prefix(plan) / "lib" / plan["mpi"][0]["believe"]["soname"]
    said = subprocess.run(["ldd", libmpi], capture_output=True, text=True, check=True).stdout
    name, real = re.search(rf"({stem}\S+) => (\S+)", said).groups()
    assert check("identity", beneath="/usr")["Identity"]["result"] == "pass"
    other = Path(shutil.copy(real, tmp_path / name))
    launch = through(plan, f"env LD_LIBRARY_PATH={tmp_path}:$LD_LIBRARY_PATH")
    fault = "another UCX or libfabric by LD_LIBRARY_PATH"
    why = check("identity", beneath="/usr", launch=launch, fault=fault)["Identity"]["why"]
    assert f"loaded {other}; planned was that below " in why and "Look at LD_LIBRARY_PATH" in why


def test_a_transport_library_that_is_not_there_is_named(check, plan, tmp_path):
    """Where programs are compiled, and where ranks of a program start."""
    lacking = without_transport(plan, prefix(plan), tmp_path)
    libmpi = next(Path(lacking["tree"]).glob("software/**/lib/libmpi.so.[0-9]*"))
    launch = through(plan, f"env LD_PRELOAD={libmpi}")
    fault = "libucp or libfabric is not there, where ranks start"
    why = check("identity", launch=launch, fault=fault)["Identity"]["why"]
    name = {"ucx": "libucp.so.9", "libfabric": "libfabric.so.9"}
    name = name[plan["mpi"][0]["transport"]["library"]]
    started = f"did not start: the library {name}, which it or the MPI needs, is not there"
    assert started in why and "Run mpi-doctor, with " in why
    fault = "libucp or libfabric is not there, where programs are built"
    why = check("identity", of=lacking, fault=fault)["Identity"]["why"]
    assert f"{name}, needed by {lacking['tree']}/" in why or started in why


def interposed(plan, tmp_path, name):
    """The launch line with a library of ours before libmpi."""
    library = tmp_path / f"{name}.so"
    mpicc = prefix(plan) / "bin" / "mpicc"
    words = [mpicc, "-shared", "-fPIC", "-o", library, HERE / f"interpose_{name}.c"]
    subprocess.run(words, check=True)
    return through(plan, f"env LD_PRELOAD={library}")


def test_a_wrong_element_of_one_collective_fails(check, plan, tmp_path):
    fault = "an Allreduce that is wrong in its last element, from 1,024 elements on"
    cases = check("collectives", launch=interposed(plan, tmp_path, "allreduce"), fault=fault)
    case = cases["Collectives 2"]
    assert case["result"] == cases["Collectives 3"]["result"] == "fail"
    assert "10 wrong results" in case["why"]
    assert "allreduce int 1024: rank 1 element 1023 found 34 expected 33" in case["why"]


def test_a_wrong_element_of_each_collective_is_named(plan, tmp_path):
    """The check's program alone: the test above shows what the check makes of what it says."""
    program, line = tmp_path / "collectives", interposed(plan, tmp_path, "collectives")
    source = HERE.parent / "reframe" / "src" / "collectives.c"
    subprocess.run([prefix(plan) / "bin" / "mpicc", "-o", program, source], check=True)
    for what in (
        *("gatherv", "scatterv", "alltoallw", "reduce_scatter", "igather", "iscatter"),
        *("iallgather", "neighbor_allgather", "neighbor_alltoall", "allreduce_init"),
    ):
        wrong = line.replace("env ", f"env WRONG={what} ").format(ranks=2, program=program)
        said = in_module(plan, f"{wrong} all few")
        (first, *_) = re.findall(r"^wrong .*$", said, re.M)
        caught(f"a wrong element of {what}", ["Collectives"], first, plan)
        assert re.match(
            rf"wrong {what} int 1024: rank \d element \d+ found \d+ expected \d+", first
        )


def test_a_wrong_element_of_one_put_fails(check, plan, tmp_path):
    if of_debian(plan):
        pytest.skip(of_debian.__doc__)
    launch, fault = interposed(plan, tmp_path, "put"), "an MPI_Put that is wrong in one element"
    why = check("one_sided", launch=launch, fault=fault)["OneSided"]["why"]
    # rank 1 sees it, and whoever gets it back
    assert re.search("a wrong value: (put, fence|get, flush) of 1000 elements, allocated", why)
    assert "element 999" in why


def test_a_wrong_element_of_one_message_fails(check, plan, tmp_path):
    assert check("messages")["Messages"]["result"] == "pass"
    launch, fault = interposed(plan, tmp_path, "mrecv"), "a message that is wrong in one element"
    why = check("messages", launch=launch, fault=fault)["Messages"]["why"]
    assert "brought a wrong value: MPI_Isend out of every place, MPI_Mrecv into every third" in why
    assert "of 709 elements" in why and "element 2124" in why


def test_a_synchronous_send_that_does_not_wait_fails(check, plan, tmp_path):
    launch, fault = interposed(plan, tmp_path, "issend"), "a synchronous send that does not wait"
    why = check("messages", launch=launch, fault=fault)["Messages"]["why"]
    assert "MPI_Issend of bytes to each rank, of 8 elements: rank 0 takes as received" in why


@pytest.mark.parametrize("threshold", [-1, 64])
def test_over_the_network_each_message_goes_to_its_own_receive(check, plan, threshold):
    """Patches acks-by-rank, acks-in-turn and matched-probe-of-segments; -1 is the default."""
    entry = plan["mpi"][0]
    if (entry["product"], entry["device"]) != ("mvapich", "ch4:ofi"):
        pytest.skip("only MVAPICH over ch4:ofi has the patches")
    wrapper = f"env MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD={threshold}"
    launch = through(plan, wrapper, "'FI_PROVIDER=tcp;ofi_rxm'")
    cases = check("messages", launch=launch)
    assert [(case["result"], case["why"]) for case in cases.values()] == [("pass", "")] * 2


def test_a_message_taken_before_its_turn_fails(check, plan, tmp_path):
    assert check("messages")["Dialogue"]["result"] == "pass"
    launch, fault = interposed(plan, tmp_path, "recv"), "a receive that takes any tag"
    why = check("messages", launch=launch, fault=fault)["Dialogue"]["why"]
    assert "brought a wrong value: a message behind another one, of 1 bytes: rank 1" in why


def test_gpu_buffers_are_checked_by_value(check, plan, tmp_path):
    """By a runtime whose GPU memory is the host's, which every MPI takes."""
    if of_debian(plan):
        pytest.skip(of_debian.__doc__)
    launch = interposed(plan, tmp_path, "gpu")
    case = check("gpu", launch=launch.replace("env ", "env GPUS=1 "), gpu="nvidia")["GpuBuffers"]
    assert (case["result"], case["why"]) == ("pass", "")
    figures = {figure["name"]: figure["value"] for figure in case["figures"]}
    assert sorted(figures) == ["gpu_bandwidth", "gpu_strided_bandwidth"]
    assert all(value > 0 for value in figures.values())
    wrong = launch.replace("env ", "env GPUS=1 GPU_LOSES=1 ")
    fault = "a message between GPUs that is wrong in one element"
    why = check("gpu", launch=wrong, gpu="nvidia", fault=fault)["GpuBuffers"]["why"]
    assert "wrong: message GPU to GPU: rank " in why and "element 99 found" in why
    fault = "a node whose GPUs are gone"
    why = check("gpu", launch=launch, gpu="nvidia", fault=fault)["GpuBuffers"]["why"]
    assert "none: cuda's runtime finds no GPU for rank " in why and "nvidia-smi" in why


def test_an_mpi_that_has_lost_its_gpus_fails(check):
    assert check("gpu") == {}
    fault = "an MPI that is not built for GPUs, where that was planned"
    why = check("gpu", gpu="nvidia", fault=fault)["GpuBuffers"]["why"]
    assert "lost: no runtime of a GPU is loaded with this MPI" in why and "ldd" in why


def test_a_collective_that_hangs_is_named(check, plan, tmp_path):
    launch = interposed(plan, tmp_path, "hang")
    fault = "a Gather that never ends, at one size"
    case = check("collectives", launch=launch, limit="4", fault=fault)["Collectives 2"]
    assert case["result"] == "fail"
    assert "a collective does not end: gather double 129: rank " in case["why"]


def test_a_figure_outside_its_reference_fails(check, plan, tmp_path):
    row = {"partition": plan["partition"], "mpi": plan["mpi"][0]["module"], "figure": "latency"}
    row |= {"size": 8, "value": 0.001, "unit": "us", "below": None, "above": 0.1, "source": "none"}
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / f"{plan['system']}.yaml").write_text(json.dumps([row]))
    cases = check("benchmarks", fault="a figure outside its reference")
    assert cases["Benchmark latency"]["result"] == "fail"
    assert "latency_8=" in cases["Benchmark latency"]["why"]
    judged = [row for row in cases["Benchmark latency"]["figures"] if row["reference"]]
    assert [(row["size"], row["allowed"]) for row in judged] == [(8, "any to +10 %")]
    assert cases["Benchmark bandwidth"]["result"] == "pass"


def test_a_program_that_never_starts_fails_every_check(check, plan):
    names, fault = ("hello", "mpi_io", "collectives", "identity", "world"), "nothing starts"
    cases = check(*names, launch=through(plan, "false"), fault=fault)
    assert {case["result"] for case in cases.values()} == {"fail"}


def test_what_the_plan_has_and_the_tree_has_not_fails(check):
    package = {"name": "HPCC", "version": "1.5.0", "module": "hpcc/0.0.0"}
    fault = "a module of an application that is not there"
    case = check("hpcc", packages=[package], fault=fault)["Hpcc"]
    assert case["result"] == "fail"
    assert "Lmod has detected" in case["why"] and "hpcc/0.0.0" in case["why"]


def test_without_any_other_benchmark_our_own_runs(check, plan):
    cases = check("benchmarks")
    omb = prefix(plan) / "libexec" / "osu-micro-benchmarks"
    named = "OSU Micro-Benchmarks" if omb.exists() else "mvstack_pingpong (our own program)"
    assert all(case["benchmark"].startswith(named) for case in cases.values())
    assert {case["result"] for case in cases.values()} == {"pass"}
