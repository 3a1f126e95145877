"""`mvstack compare` with real MPIs: Debian's MPICH as ours, Open MPI and MPICH as peers."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import small_omb
from measured_tree import measured
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.measure import bench, mpis
from mvstack.measure.results import draw
from mvstack.support.errors import InvalidInput, Locked, Missing
from mvstack.test.run import alone

TINY = ["--sizes", "8:64", "--rounds", "2"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with an installed tree, the source of benchmarks, and what is compiled once."""
    folder = tmp_path_factory.mktemp("measure")
    measured(folder / "root")
    small_omb.source(folder / "omb")
    return folder


def words(world: Path, to: Path, *more: str) -> list[str]:
    root = ["--root", str(world / "root"), "--omb", str(world / "omb"), "--to", str(to)]
    return ["compare", "local", *root, *TINY, *more]


def compared(world: Path, to: Path, *more: str, status: int = 0) -> dict[str, Any]:
    environment = {"XDG_STATE_HOME": str(world / "state")}
    done = CliRunner().invoke(app, [*words(world, to, *more), "--json"], env=environment)
    assert done.exit_code == status, done.output + repr(done.exception)
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def of(data: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in data["operations"] if one["op"] == name)


# Starts what follows it as srun does: as nobody's child here.
DETACHED = """#!/bin/bash
out=$(mktemp)
setsid -f bash -c '"$@" >"$0" 2>&1; echo $? >"$0.status"' "$out" "$@"
while [[ ! -s $out.status ]]; do sleep 0.02; done
cat "$out"
exit "$(<"$out.status")"
"""


def test_ranks_that_are_nobodys_children_say_what_they_took(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So srun starts them: they passed for other programs, and no round was quiet."""
    starter = tmp_path / "starter"
    starter.write_text(DETACHED)
    starter.chmod(0o755)
    seen = []

    @contextlib.contextmanager
    def watched(_: bench.Bench) -> Iterator[dict[str, float]]:
        seen.append({"load": 0.0, "seconds": 1.0, "others": 0.0, "hop": 0.0})
        yield seen[-1]

    monkeypatch.setattr(bench.Bench, "watched", watched)
    line = f"{starter} mpiexec -n {{ranks}} {{program}}"
    data = compared(world, tmp_path, "--ops", "latency", "--launcher", line)
    assert data["faults"] == []
    assert [one["ranks"] > 0 for one in seen] == [True] * 3  # to warm up, and two rounds


def test_three_mpis_are_measured_in_turns_and_an_absent_one_is_named(
    world: Path, tmp_path: Path
) -> None:
    peers = ["--peer", "system:openmpi", "--peer", "system:mpich", "--peer", "prefix:/nowhere"]
    data = compared(world, tmp_path, *peers, "--ops", "latency,bw,allreduce,barrier,init")
    assert [one["name"] for one in data["mpis"]][1:] == ["system:openmpi", "system:mpich"]
    assert "Open MPI" in data["mpis"][1]["version"] and "MPICH" in data["mpis"][2]["version"]
    assert data["absent"][0]["message"] == "prefix:/nowhere: there is no bin/mpicc"
    assert data["faults"] == []
    assert len(data["operations"]) == 5
    ours = data["mpis"][0]["name"]
    for one in data["operations"]:
        mean = one["ahead"][ours]["mean"]
        assert 0 < mean["low"] <= mean["value"] <= mean["high"]
    assert [row["size"] for row in of(data, "latency")["figures"][ours]] == [8, 16, 32, 64]
    assert of(data, "init")["figures"][ours][0]["size"] == 0
    assert json.loads((tmp_path / "compare.json").read_text()) == data
    assert "<svg" in (tmp_path / "compare.svg").read_text()
    (kept,) = tmp_path.glob("*.jsonl")
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    for number in (1, 2):
        turns = [r["mpi"] for r in rows if r.get("round") == number and r["op"] == "bw"]
        assert sorted(turns) == sorted(one["name"] for one in data["mpis"])
        assert turns[0] == data["mpis"][number % 3]["name"]  # each round begins with another


def test_ours_is_measured_over_another_ucx_and_not_over_what_it_does_not_load(
    world: Path, tmp_path: Path
) -> None:
    debian, other, none = (Path("/usr/lib/x86_64-linux-gnu"), tmp_path / "ucx-x", tmp_path / "none")
    (other / "lib").mkdir(parents=True)
    for file in debian.glob("libuc[pst]*.so*"):
        shutil.copy(file, other / "lib", follow_symlinks=False)
    none.mkdir()
    ladder = ["--ladder", str(other), "--ladder", str(none)]
    done = CliRunner().invoke(app, words(world, tmp_path / "to", "--ladder", "/nowhere"))
    assert isinstance(done.exception, InvalidInput) and "no such folder" in str(done.exception)
    data = compared(world, tmp_path / "to", *ladder, "--ops", "latency,allreduce")
    ours, rung = (one["name"] for one in data["mpis"])
    if "ucx" not in ours:
        pytest.skip("Debian's MPICH here is not over UCX")
    assert rung == f"{ours} over {other}"
    (absent,) = data["absent"]
    assert absent["message"] == (
        f"{ours} over {none}: there is no libfabric or UCX that this MPI would load"
    )
    assert absent["found"] == "it loads /lib/x86_64-linux-gnu/libucp.so.0"
    assert set(of(data, "latency")["figures"]) == {ours, rung}
    plan = json.loads(next((world / "root").glob("*/local/records/plan.json")).read_text())
    environment = mpis.over(mpis.ours(plan, {}, [])[0], other).environment
    traced = {**environment, "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(tmp_path / "loader")}
    subprocess.run(["mpiexec", "-n", "1", "mpichversion"], env=traced, check=True,
                   capture_output=True)  # fmt: skip
    loaded = "".join(path.read_text() for path in tmp_path.glob("loader.*"))
    assert f"calling init: {other}/lib/libucp.so.0" in loaded


def test_what_is_named_is_measured_and_the_time_is_told_first(world: Path, tmp_path: Path) -> None:
    named = ["--ops", "get,gather,scatter,reduce_scatter"]
    environment = {"XDG_STATE_HOME": str(world / "state")}
    done = CliRunner().invoke(app, words(world, tmp_path, *named), env=environment)
    assert done.exit_code == 0, done.output + repr(done.exception)
    first = next(line for line in done.stderr.splitlines() if "verify" in line)
    assert "4 operations by value, about 40 s to the end" in first  # 4 times 3 runs, and 2 rounds
    data = json.loads((tmp_path / "compare.json").read_text())
    assert data["faults"] == []
    found = [one["op"] for one in data["operations"]]
    assert found == ["get", "gather", "scatter", "reduce_scatter"]
    again = CliRunner().invoke(app, words(world, tmp_path, *named), env=environment)
    assert "4 operations by value, about 0 s to the end" in again.stderr


def test_what_was_measured_is_not_measured_again(world: Path, tmp_path: Path) -> None:
    compared(world, tmp_path, "--ops", "latency")
    (kept,) = tmp_path.glob("*.jsonl")
    before = kept.read_text()
    kept.write_text(before + '{"kind": "value", "round": 7')  # as kill -9 leaves it
    compared(world, tmp_path, "--ops", "latency")
    assert kept.read_text() == before
    data = compared(world, tmp_path, "--ops", "latency", "--rounds", "3")
    assert [row["round"] for row in data["rounds"]] == [1, 2, 3]
    assert kept.read_text().startswith(before)


@pytest.mark.parametrize(
    ("fault", "why"), [("wrong", "data arrived changed"), ("hang", "it hangs")]
)
def test_an_mpi_that_is_wrong_or_hangs_is_told_and_not_timed(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setattr(bench, "LIMIT", 3.0)
    data = compared(world, tmp_path, "--ops", "latency", status=1)  # nothing is left to compare
    assert data["operations"] == []
    assert [(one["op"], why in one["why"]) for one in data["faults"]] == [("latency", True)]


def test_worlds_of_one_rank_are_told(world: Path, tmp_path: Path) -> None:
    """Open MPI's launcher starts MPICH's programs as so many worlds of one rank."""
    line = "system:mpich=/usr/bin/mpiexec.openmpi --oversubscribe -n {ranks} {program}"
    ops = ["--ops", "allreduce,barrier", "--peer", "system:mpich", "--launcher", line]
    data = compared(world, tmp_path, *ops)
    assert {one["op"] for one in data["faults"]} == {"allreduce", "barrier"}
    assert all("does not fit the MPI" in one["why"] for one in data["faults"])


def test_two_at_once_do_not_measure_into_one_folder(world: Path, tmp_path: Path) -> None:
    """Both wrote into one file, each the load of the other."""
    environment = {"XDG_STATE_HOME": str(world / "state")}
    with alone(tmp_path / "measured", "this comparison"):
        done = CliRunner().invoke(app, words(world, tmp_path), env=environment)
    assert isinstance(done.exception, Locked) and "running this comparison" in str(done.exception)
    assert not [*tmp_path.glob("*.jsonl")]


def test_a_peer_that_is_left_out_is_named_before_hours_of_measuring(
    world: Path, tmp_path: Path
) -> None:
    environment = {"XDG_STATE_HOME": str(world / "state")}
    peers = ["--peer", "module:nowhere/1", "--ops", "latency"]
    done = CliRunner().invoke(app, words(world, tmp_path, *peers), env=environment)
    first = done.stderr.partition("verify")[0]
    assert "left out: module:nowhere/1 cannot be loaded" in first and "module avail" in first
    assert "unknown" in done.stdout and "()" not in done.stdout


def test_what_cannot_be_written_is_named_with_what_to_do(world: Path, tmp_path: Path) -> None:
    environment, to = {"XDG_STATE_HOME": str(world / "state")}, tmp_path / "to"
    (to / "compare.json").mkdir(parents=True)  # as a full disk fails: at the end
    done = CliRunner().invoke(app, words(world, to, "--ops", "latency"), env=environment)
    assert isinstance(done.exception, Missing)
    assert f"{to}: results cannot be kept" in str(done.exception) and "--to" in str(done.exception)


def test_an_interruption_leaves_nothing_running_and_goes_on(world: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "mvstack", *words(world, tmp_path, "--rounds", "500")]
    environment = {**os.environ, "XDG_STATE_HOME": str(world / "state")}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = iter(process.stderr.readline, "")
        assert any("round 1" in line and "to the end" in line for line in said)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "run the same command again" in rest
    left = subprocess.run(["pgrep", "-f", str(world / "state")], capture_output=True, text=True)
    assert left.stdout == ""
    (kept,) = tmp_path.glob("*.jsonl")
    for line in kept.read_text().splitlines():
        json.loads(line)


def test_a_line_that_starts_no_program_is_refused() -> None:
    with pytest.raises(InvalidInput, match="starts no program"):
        mpis.launchers(["srun -n 2"], [])
    with pytest.raises(InvalidInput, match="No closing quotation"):
        mpis.launchers(["srun --comment=it's -n {ranks} {program}"], [])
    with pytest.raises(InvalidInput, match=r"no module:openmpi/5\.0\.6 is measured"):
        mpis.launchers(["module:openmpi/5.0.6=x -n {ranks} {program}"], ["module:openmpi/5.0.7"])
    lines = ["a=x -n {ranks} {program}", "y --mpi=pmi2 -n {ranks} {program}"]
    named = mpis.launchers(lines, ["a"])
    assert named == {"a": "x -n {ranks} {program}", "": "y --mpi=pmi2 -n {ranks} {program}"}


def test_a_module_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="cannot be loaded"):
        mpis.peer("module:nowhere/1", tmp_path, {})


def test_an_mpi_of_the_sites_modules_is_measured(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's Open MPI in a folder of its own, behind a module of Lmod, as sites have theirs."""
    bin_folder = tmp_path / "openmpi" / "bin"
    bin_folder.mkdir(parents=True)
    called = tmp_path / "called"
    for name in ("mpicc", "mpiexec"):  # what compiles and starts is what the module has
        line = f'#!/bin/sh\necho {name} >>{called}\nexec /usr/bin/{name}.openmpi "$@"\n'
        (bin_folder / name).write_text(line)
        (bin_folder / name).chmod(0o755)
    module = tmp_path / "modules" / "ompi-of-site" / "4.1.lua"
    module.parent.mkdir(parents=True)
    module.write_text(
        f'prepend_path("PATH", "{bin_folder}")\nsetenv("OMPI_MCA_btl", "self,vader")\n'
    )
    monkeypatch.setenv("LMOD_SITE_MODULEPATH", str(module.parents[1]))
    monkeypatch.setenv("OMPI_MCA_btl", "none")  # the caller's: what the module says counts
    word = "module:ompi-of-site/4.1"
    data = compared(world, tmp_path / "to", "--peer", word, "--ops", "latency,allreduce")
    assert (data["absent"], data["faults"]) == ([], [])
    assert data["mpis"][1]["name"] == word and "Open MPI" in data["mpis"][1]["version"]
    ours = data["mpis"][0]["name"]
    for one in data["operations"]:
        assert set(one["figures"]) == {ours, word}
    assert set(called.read_text().split()) == {"mpicc", "mpiexec"}


def test_ranks_are_bound_to_cores_of_their_own() -> None:
    show = "import os; print(sorted(os.sched_getaffinity(0)))"
    ours = sorted(os.sched_getaffinity(0))
    seen = []
    for rank in ("0", "1", "2")[: len(ours)]:
        command = ["bash", str(mpis.BOUND), sys.executable, "-c", show]
        environment = {**os.environ, "MV2_COMM_WORLD_LOCAL_RANK": rank, "SLURM_LOCALID": "0"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seen.append(json.loads(done.stdout))
    if len(ours) > 1:
        assert all(len(one) == 1 for one in seen) and len({one[0] for one in seen}) == len(seen)
        assert seen[0] == ours[:1] and seen[1][0] > ours[0]


def test_a_launcher_that_brings_no_variables_along_does_not_change_what_is_measured(
    tmp_path: Path,
) -> None:
    """As ssh: `compare` measured ours without what its module sets, and `tune` found nothing."""
    brings = {"PATH": os.environ["PATH"], "UCX_TLS": "tcp"}
    line = "env -i " + " ".join(f"{name}={value}" for name, value in brings.items())
    sets = {"UCX_TLS": "^tcp", "FI_PROVIDER": "verbs;ofi_rxm", "LD_LIBRARY_PATH": "/a/b=c"}
    mpi = mpis.Mpi("m", "mpicc", f"{line} {{program}}", {**sets, "HOME": "/nowhere"}, "x")
    program = tmp_path / "a=b"
    program.symlink_to("/usr/bin/env")
    said = subprocess.check_output(mpi.command(2, program, "A=1", hosts=tmp_path), text=True)
    found = dict(row.split("=", 1) for row in said.splitlines())
    assert {name: found[name] for name in sets} == {**sets, "UCX_TLS": "tcp"}  # what it brings
    assert "HOME" not in found and found["A"] == "1"


@pytest.mark.parametrize(("far", "cores"), [("", [1024, 1025, 1026]), ("far", [1024, 1031, 1025])])
def test_far_apart_ranks_take_cores_from_either_end(
    tmp_path: Path, far: str, cores: list[int]
) -> None:
    for name, line in (("sed", "echo 1024-1031"), ("taskset", 'echo "$2"')):  # a larger machine
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    seen = []
    for rank in range(3):
        environment = {"PATH": path, "MPI_LOCALRANKID": str(rank), "MVSTACK_BOUND": far}
        seen.append(int(subprocess.check_output(["bash", mpis.BOUND, "x"], env=environment)))
    assert seen == cores


SLOW_OR_WRONG = """#include <mpi.h>
#include <unistd.h>
int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype of, MPI_Op op, MPI_Comm comm)
{
    int code = PMPI_Allreduce(in, out, count, of, op, comm);
    return usleep(SLOW), code;
}
int MPI_Barrier(MPI_Comm comm) { return WRONG ? MPI_SUCCESS : PMPI_Barrier(comm); }
"""


@pytest.mark.parametrize(("slow", "wrong"), [(0, 0), (0, 1), (30000, 0)])
def test_a_rank_that_waits_for_its_core_is_no_wrong_barrier(
    world: Path, tmp_path: Path, slow: int, wrong: int
) -> None:
    """On a busy machine a barrier that was right was named as wrong, and not measured."""
    del world  # it skips without an MPI
    (tmp_path / "more.c").write_text(SLOW_OR_WRONG)
    sources = [Path(bench.__file__).with_name("verify.c"), tmp_path / "more.c"]
    flags = [f"-DSLOW={slow}", f"-DWRONG={wrong}", "-o", tmp_path / "verify"]
    subprocess.run(["mpicc.mpich", *flags, *sources], check=True)
    command = ["mpiexec.mpich", "-n", "2", tmp_path / "verify"]
    said = subprocess.check_output(command, text=True, timeout=100)
    assert ("barrier wrong" in said) == bool(wrong)


def test_other_programs_do_not_move_the_cores(tmp_path: Path) -> None:
    """The wait for a core passed for a distance: 42 µs, and half of all runs fell out."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core has no distance")
    hop, source = tmp_path / "hop", Path(bench.__file__).with_name("hop.c")
    subprocess.run(["cc", "-O2", "-pthread", "-o", hop, source], check=True)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        known = [float(subprocess.check_output([hop], timeout=30) or 0) for _ in range(3)]
        last = [float(subprocess.check_output(["nice", hop], timeout=30) or 0) for _ in range(3)]
    finally:
        for one in busy:
            one.kill()
            one.wait()
    assert any(known) and max(*known, *last) < 1000  # or unknown: 0


def test_second_threads_of_cores_are_cores_where_the_first_may_not_be_used(
    tmp_path: Path,
) -> None:
    """A container that has these alone: no rank was bound, and nobody said so."""
    lists = {"sed": "echo 4-7", "taskset": 'echo "$2"'}
    lists["cat"] = (
        "c=${1#*/cpu/cpu}; c=$((${c%%/*} / 2)); echo $((c - 2)),$((c * 2)),$((c * 2 + 1))"
    )
    for name, line in lists.items():  # 4 and 5 are threads of one core, 6 and 7 of another
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    path, seen = f"{tmp_path}:{os.environ['PATH']}", []
    for rank in range(3):
        environment = {"PATH": path, "MPI_LOCALRANKID": str(rank)}
        seen.append(subprocess.check_output(["bash", mpis.BOUND, "x"], env=environment, text=True))
    assert seen == ["4\n", "6\n", "4\n"]


def test_the_long_path_of_a_prefix_leaves_room_for_the_plot(tmp_path: Path) -> None:
    name = (
        "prefix:/apps/spack/2026.11/opt/linux-rocky9-zen4/gcc-14.3.0/"
        + "mvapich-4.0-t4snq27irfbhb2vppb2shbj27wz66i7s"
    )
    row = {"size": 8, "value": 1.0, "low": 0.9, "high": 1.1}
    one = {"op": "latency", "unit": "us", "higher_is_better": False, "figures": {name: [row]}}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # that the layout fails is said by a warning
        draw({"operations": [{**one, "ahead": {}}] * 3}, tmp_path / "plot.svg")
    assert "<svg" in (tmp_path / "plot.svg").read_text()
