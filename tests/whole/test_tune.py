"""`mvstack tune` finds a bad default that was planted and undoes it, each time that it is run.

Debian's MPICH is planted to send messages between the ranks of a node over TCP; an MVAPICH below
MVSTACK_TEST_ROOT (its module in MVSTACK_TEST_MPI) to sum around a ring, and over UCX to let every
message of 64 bytes and more wait for its receiver. The same between two hosts of tests/lab/hosts,
over TCP, with an MVAPICH or Debian's MPICH.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import pytest
import small_omb
from checks_tree import LMOD, installed_plan
from measured_tree import installed, measured
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.model.base import validated
from mvstack.model.tuning import Tuned, table
from mvstack.model.yamlfile import read_yaml
from mvstack.test.run import CHECKS

BAD = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
PLANTED = {
    "latency": {"UCX_RNDV_THRESH": "64"},
    "allreduce": {
        "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring",
    },
}
BETWEEN = {
    "ch4:ucx": {"UCX_RNDV_THRESH": "64"},
    "ch4:ofi": {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": "64"},
}
LAB = [str(Path(__file__).parents[1] / "lab" / "hosts"), "-n", "2", "--own-cores"]
SRC = Path(__file__).parents[2] / "src"
OMB = os.environ.get("MVSTACK_TEST_OMB", "")  # the source of the real benchmarks


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    plan = measured(folder / "root")
    row = plan["mpi"][0]
    if row["device"] != "ch4:ucx":
        pytest.skip(f"Debian's MPICH has {row['device']}; the planted default is of ch4:ucx")
    plant(plan, BAD)
    small_omb.source(folder / "omb")
    return folder


def plant(plan: dict[str, Any], bad: dict[str, str]) -> None:
    """Have the module of the first MPI set ``bad``."""
    (module,) = Path(plan["tree"], "modules").rglob(f"{plan['mpi'][0]['module']}.lua")
    planted = "".join(f'setenv("{name}", "{value}")\n' for name, value in bad.items())
    module.write_text(module.read_text() + planted)


Called = tuple[int, str]


def called(words: list[str], state: dict[str, str]) -> Called:
    """The status of a command of ours, and what it said."""
    done = CliRunner().invoke(app, words, env=state)
    return done.exit_code, done.output + repr(done.exception)


def among_hosts(words: list[str], state: dict[str, str]) -> Called:
    """The same on the first of two hosts of the lab, each with processors of its own."""
    command = [sys.executable, "-m", "mvstack", *words]
    hosts = shlex.quote(f"{state['XDG_STATE_HOME']}/hosts")
    line = f"mkdir -p $(dirname {hosts}); cp $LAB_HOSTS {hosts}; exec {shlex.join(command)}"
    environment = {**os.environ, **state, "PYTHONPATH": str(SRC)}
    done = subprocess.run(
        [*LAB, "bash", "-c", line], env=environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


def tuned(
    world: Path,
    file: Path,
    *more: str,
    ops: str = "latency,allreduce",
    by: Callable[[list[str], dict[str, str]], Called] = called,
) -> Tuned:
    words = ["tune", "local", "--root", str(world / "root"), "--omb", OMB or str(world / "omb")]
    words += ["--ops", ops, "--sizes", "64:4096", "--to", str(file)]
    state = {"XDG_STATE_HOME": str(world / "state")}
    for number in range(8):  # on a busy machine the budget ends first: the same command goes on
        now = [*words, "--budget", "3m", *(one for one in more if number == 0 or one != "--fresh")]
        status, said = by(now, state)
        if status == 0 or "ended before" not in said:
            break
        assert not file.exists()
    assert status == 0, said
    return validated(Tuned, read_yaml(file))


def test_a_planted_default_is_found_and_undone_twice(world: Path, tmp_path: Path) -> None:
    found = [tuned(world, tmp_path / f"{n}.yaml", *(["--fresh"] * (n > 1))) for n in (1, 2)]
    for one in found:
        assert "tcp" not in one.sets["UCX_TLS"].value
        assert one.gain is not None and one.gain.low > 1.5
        assert one.tried >= 4
        assert set(one.by) == {"latency on 2 ranks", "allreduce on 2 ranks"} | {
            label for label in one.by if "allreduce" in label
        }
    again = tuned(world, tmp_path / "3.yaml")  # nothing left to measure: the same answer
    assert again.sets == found[1].sets


@pytest.mark.parametrize("ops", PLANTED)
def test_bad_defaults_of_mvapich_are_found_and_undone_twice(ops: str, tmp_path: Path) -> None:
    plan, bad = installed(tmp_path / "root"), PLANTED[ops]
    if ops == "latency" and plan["mpi"][0]["device"] != "ch4:ucx":
        pytest.skip("over ch4:ofi no variable makes short messages of a node wait")
    plant(plan, bad)
    small_omb.source(tmp_path / "omb")
    module = ("--mpi", plan["mpi"][0]["module"])
    found = [
        tuned(tmp_path, tmp_path / f"{n}.yaml", *module, *(["--fresh"] * (n > 1)), ops=ops)
        for n in (1, 2)
    ]
    for one in found:
        assert set(one.sets) & set(bad), one
        assert one.gain is not None and one.gain.low > 1.05
    both = [{name: row.value for name, row in one.sets.items()} for one in found]
    first, second, planted = side_by_side(plan, [*both, {}], ops, tmp_path)
    assert 0.75 < first / second < 1.33, (first, second)
    assert planted > 1.05 * max(first, second)


def over_tcp(plan: dict[str, Any]) -> None:
    """Make ``plan`` and the module of its first MPI those of nodes on Ethernet."""
    row = plan["mpi"][0]
    row["fabric"], plan["packages"] = "tcp", []
    if row["device"] == "ch4:ucx":
        row["believe"]["transports"] = ["tcp"]
    (module,) = Path(plan["tree"], "modules").rglob(f"{row['module']}.lua")
    module.write_text(module.read_text().replace('setenv("UCX_TLS", "^tcp")\n', ""))
    Path(plan["tree"], "records", "plan.json").write_text(json.dumps(plan))


def test_a_bad_default_between_two_hosts_is_found_and_undone_twice(tmp_path: Path) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lack = [one for one in ("ip", "tc", "ssh", "dropbear") if not shutil.which(one, path=path)]
    if os.geteuid() or lack:
        pytest.skip(f"skipped: unreachable: needs root, for network namespaces, and {lack}")
    own = installed_plan()
    ours = own is not None and own["mpi"][0]["product"] == "mvapich"
    plan = installed(tmp_path / "root") if ours else measured(tmp_path / "root")
    over_tcp(plan)
    bad = BETWEEN[plan["mpi"][0]["device"]]
    plant(plan, bad)
    small_omb.source(tmp_path / "omb")
    line = f"mpiexec -launcher ssh -f {tmp_path}/state/hosts -n {{ranks}} {{program}}"
    more = ("--mpi", plan["mpi"][0]["module"], "--launcher", line)
    found = [
        tuned(
            tmp_path,
            tmp_path / f"{n}.yaml",
            *more,
            *(["--fresh"] * (n > 1)),
            ops="latency",
            by=among_hosts,
        )
        for n in (1, 2)
    ]
    for one in found:
        print(one)
        assert set(one.sets) & set(bad), one
        assert one.gain is not None and one.gain.low > 1.05
        assert one.measured["nodes"] == "2"
        values = [value for row in one.rejected for value in row.settings]
        assert not [name for name in (*values, *one.sets) if "POSIX" in name or "CMA" in name]
    both = [{name: row.value for name, row in one.sets.items()} for one in found]
    times = side_by_side(plan, [*both, {}], "latency", tmp_path, lab=LAB)
    print(times)
    first, second, planted = times
    assert 0.75 < first / second < 1.33, (first, second)
    assert planted > 1.05 * max(first, second)


def side_by_side(
    plan: dict[str, Any],
    settings: list[dict[str, str]],
    what: str,
    folder: Path,
    lab: Sequence[str] = (),
) -> list[float]:
    """µs with each of ``settings``: medians of nine rounds in turns, geometric mean over sizes."""
    start = "mpiexec -launcher ssh -f $LAB_HOSTS -n 2" if lab else "mpiexec -n 2 -bind-to core"
    module = f"mvapich-stack/{plan['release']} {plan['mpi'][0]['module']}"
    load = f"source {LMOD}; export MODULEPATH={plan['tree']}/modules/Core; module load {module}"

    def printed(line: str) -> str:
        words = [*lab, "bash", "-c", f"{load} 2>/dev/null; {line}"]
        return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout

    printed(f"mpicc -O2 -o pingpong {CHECKS}/src/mvstack_pingpong.c")
    rounds: list[list[float]] = [[] for _ in settings]
    for _ in range(9):
        for values, kept in zip(settings, rounds, strict=True):
            words = " ".join(f"{name}={table(value) or value}" for name, value in values.items())
            said = printed(f"env {words} {start} ./pingpong {what} 4096")
            rows = [line.split() for line in said.splitlines() if not line.startswith("#")]
            kept.append(geometric_mean([float(us) for size, us in rows if int(size) >= 64]))
    return [median(one) for one in rounds]


def compared(world: Path, to: Path, **environment: str) -> dict[str, Any]:
    words = ["compare", "local", "--root", str(world / "root"), "--omb", str(world / "omb")]
    words += ["--ops", "latency", "--sizes", "64:1024", "--rounds", "3", "--json", "--to", str(to)]
    state = {"XDG_STATE_HOME": str(world / "state")}
    done = CliRunner().invoke(app, words, env=state | environment)
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_the_planted_default_shows_in_a_comparison(world: Path, tmp_path: Path) -> None:
    data = compared(world, tmp_path)
    (latency,) = data["operations"]
    assert latency["figures"]["mpich/4.0.2-ucx"][0]["value"] > 1  # µs, over TCP
