"""`mvstack compare` and `mvstack tune` between two machines of tests/lab/verbs, over RDMA.

The machines have no Python: the commands run on this machine, and a line of --launcher enters one
of the others by ssh, which brings no variable along. The MPIs are those that
MVSTACK_TEST_VERBS_MPI names, as test_lab_verbs.py says; MVSTACK_TEST_VERBS_PEERS are words for
--peer. Nothing that is timed here says anything of a real adapter.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import small_omb
from checks_tree import plan_of
from measured_tree import kept
from test_lab_verbs import MORE, RDMA, SETTINGS, TESTS, named, planned_for, ready

from mvstack.model.base import validated
from mvstack.model.tuning import Tuned
from mvstack.model.yamlfile import read_yaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
SRC = TESTS.parent / "src"
OMB = os.environ.get("MVSTACK_TEST_OMB", "")  # the source of the real benchmarks
PEERS = os.environ.get("MVSTACK_TEST_VERBS_PEERS", "").split()
# What is beneath an MPI says which way messages go; each device has a threshold that is bad.
BELIEVED = {"ch4:ucx": {"transports": ["rc_verbs"]}, "ch4:ofi": {"provider": ["verbs;ofi_rxm"]}}
BAD = {"ch4:ucx": "UCX_RNDV_THRESH", "ch4:ofi": "MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD"}
BUDGET = os.environ.get("MVSTACK_TEST_VERBS_BUDGET", "40m")
PLACES = {"PATH": "bin", "LD_LIBRARY_PATH": "lib"}
# Over RDMA, or not at all.
PEER = {"UCX_TLS": "^tcp", "FI_PROVIDER": "verbs;ofi_rxm", "I_MPI_OFI_PROVIDER": "verbs"}
PEER |= {"OMPI_MCA_pml": "ucx"} | {
    f"OMPI_MCA_opal_common_ucx_{x}": "any" for x in ("tls", "devices")
}
STARTS = "-launcher ssh -f /lab/names -ppn 1"
OPEN = "--allow-run-as-root --bind-to none --host h1:9,h2:9 --map-by node"
# The command, with few messages of each size: one takes 1 to 10 ms, on a busy machine a tenth of a
# second. Of 4 messages the median of seven rounds still differed by a factor of 3.
FEW = 32
FEWER = f"""
from dataclasses import replace
from mvstack.measure import bench

bench.WARM_UP, bench.LIMIT = 4, 600.0
for name, one in bench.OPERATIONS.items():
    bench.OPERATIONS[name] = replace(one, iterations=min(one.iterations, {FEW}))

from mvstack.cli.main import main

main()
"""
# Enters the first machine; what was started there ends where this is ended.
BY = """#!/bin/bash
trap 'ssh h1 pkill -TERM -f counted </dev/null; kill $!' TERM
ssh h1 "cd $PWD && exec $(dirname "$0")/counted $(printf '%q ' "$@")" </dev/null &
wait $!
"""
# There: how many packets the adapter sent in that run.
COUNTED = """#!/bin/bash
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
before=$(sent)
trap 'kill $!' TERM
"$@" &
wait $!
status=$?
echo "$status $(($(sent) - before)) $*" >>"$(dirname "$0")/packets"
exit $status
"""


def soft_roce() -> dict[str, str]:
    """The variables of SETTINGS."""
    words = ["env", "-i", "bash", "-c", f"{SETTINGS}\nenv"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^((?:FI|UCX|MV2)_\w+)=(.*)", said, re.M))


def module(mpi: Path) -> str:
    return f"mvapich/4.0-{named(mpi)['Device'].partition(':')[2]}"


def tree(folder: Path, mpis: list[Path], bad: str = "") -> None:
    """A tree whose MPIs are these prefixes, for nodes with an adapter for RoCE.

    ``bad`` is the threshold that the modules plant.
    """
    root = folder / "root"
    place = root / "2026.11" / "local"
    core, rows, plan = place / "modules" / "Core", [], plan_of(place)
    for mpi in mpis:
        device = named(mpi)["Device"]
        name, _, value = planned_for(mpi).partition("=")
        sets = {**soft_roce(), name: value, **({BAD[device]: bad} if bad else {})}
        row = {"product": "mvapich", "version": "4.0", "device": device, "module": module(mpi)}
        row |= {"fabric": "roce", "believe": {**BELIEVED[device], "device": device}}
        rows.append(plan["mpi"][0] | row)
        lines = [f'prepend_path("{x}", "{mpi}/{y}")' for x, y in PLACES.items()]
        lines += [f'setenv("{x}", "{y}")' for x, y in sets.items()]
        file = core / f"{row['module']}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")
    (core / "mvapich-stack").mkdir()
    (core / "mvapich-stack" / "2026.11.lua").touch()
    kept(plan | {"mpi": rows}, root, place)


def inside(folder: Path, *words: str) -> str:
    """What a command of ours says that runs beside the machines, which see ``folder``."""
    for name, text in {"by": BY, "counted": COUNTED}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    peers = [Path(one.partition(":")[2]) for one in PEERS]
    see = [word for one in (SRC, *MORE, *peers) for word in ("--see", one)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(SRC)}
    line = [sys.executable, "-c", FEWER, *words]
    lab = [TESTS / "lab" / "verbs", *see, "--outside", *line]
    done = subprocess.run(lab, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def launched(folder: Path, name: str, prefix: Path) -> list[str]:
    """What starts an MPI in the machines. What mpiexec itself reads must be said there."""
    said = subprocess.run([prefix / "bin/mpiexec", "--version"], capture_output=True, text=True)
    sets = {} if name.startswith("mvapich") else PEER | soft_roce() | {"I_MPI_ROOT": str(prefix)}
    path = {"LD_LIBRARY_PATH": f"{prefix}/lib:{prefix}/lib/libfabric"}
    words = ["env", *(f"{x}={y}" for x, y in (path | sets).items())]
    more = f"{OPEN} -x {' -x '.join(path | sets)}" if "Open MPI" in said.stdout else STARTS
    line = f"{folder}/by {shlex.join(words)} {prefix}/bin/mpiexec {more} -n {{ranks}} {{program}}"
    return ["--launcher", f"{name}={line}"]


def packets(folder: Path, prefix: Path, program: str) -> list[int]:
    """Of each run of ``program`` over an MPI that ended well."""
    rows = [line.split() for line in (folder / "packets").read_text().splitlines()]
    of = [x for x in rows if f"{prefix}/bin/mpiexec" in x and any(program in y for y in x)]
    return [int(sent) for status, sent, *_ in of if status == "0"]


def test_mpis_are_compared_between_machines_over_rdma(tmp_path: Path) -> None:
    if not MORE:
        pytest.skip("MVSTACK_TEST_VERBS_MPI names none")
    ready(str(MORE[0]), tmp_path)
    tree(tmp_path, MORE)
    names = {module(one): one for one in MORE} | {x: Path(x.partition(":")[2]) for x in PEERS}
    words = ["compare", "local", "--root", str(tmp_path / "root"), "--to", str(tmp_path / "to")]
    words += ["--omb", OMB or str(small_omb.source(tmp_path / "omb")), "--json"]
    words += ["--ops", "latency,bw,allreduce,bcast", "--sizes", "8:65536", "--rounds", "3"]
    words += [word for one in PEERS for word in ("--peer", one)]
    words += [word for one in names.items() for word in launched(tmp_path, *one)]
    data = json.loads(inside(tmp_path, *words))
    print(json.dumps(data))
    assert {one["quiet"] for one in data["rounds"]} == {None}  # what this machine did is no matter
    assert data["machine"]["node"] == "h1" and "QEMU" in data["machine"]["cpu"]
    assert not data["faults"] and not data["absent"] and len(data["operations"]) == 4
    for prefix in names.values():
        sent = packets(tmp_path, prefix, "osu_bw")
        print(prefix, sent)
        assert min(sent) > RDMA
    rows = [json.loads(x) for one in (tmp_path / "to").glob("*.jsonl") for x in one.open()]
    assert {row["hop"] for row in rows if row["kind"] == "value"} == {0.0}


@pytest.mark.parametrize("device", BAD)
def test_a_bad_default_is_found_and_undone_over_rdma(device: str, tmp_path: Path) -> None:
    mpi = next((one for one in MORE if device == named(one)["Device"]), None)
    if not mpi:
        pytest.skip(f"no {device} among MVSTACK_TEST_VERBS_MPI")
    ready(str(mpi), tmp_path)
    tree(tmp_path, [mpi], bad="64")
    file = tmp_path / "tuned.yaml"
    words = ["tune", "local", "--root", str(tmp_path / "root"), "--to", str(file)]
    words += ["--omb", OMB or str(small_omb.source(tmp_path / "omb"))]
    words += ["--ops", "latency", "--sizes", "1024:4096", "--budget", BUDGET]
    print(inside(tmp_path, *words, *launched(tmp_path, module(mpi), mpi)))
    one = validated(Tuned, read_yaml(file))
    print(file.read_text())
    assert BAD[device] in one.sets and one.gain is not None and one.gain.low > 1.05
    assert one.measured["nodes"] == "2" and "QEMU" in one.machine["cpu"]
    # messages of two sizes or more, and an answer to each; a start sends less than 100 packets
    assert min(packets(tmp_path, mpi, "osu_latency")) > 4 * FEW
