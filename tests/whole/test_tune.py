"""`mvstack tune` finds a bad default that was planted and undoes it, each time that it is run.

The planted module sends messages between the ranks of a node over TCP.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import small_omb
from measured_tree import measured
from typer.testing import CliRunner

from mvstack.cli.main import app
from mvstack.model.base import validated
from mvstack.model.tuning import Tuned
from mvstack.model.yamlfile import read_yaml

BAD = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self"}
OMB = os.environ.get("MVSTACK_TEST_OMB", "")  # the source of the real benchmarks


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    plan = measured(folder / "root")
    row = plan["mpi"][0]
    if row["device"] != "ch4:ucx":
        pytest.skip(f"Debian's MPICH has {row['device']}; the planted default is of ch4:ucx")
    module = Path(plan["tree"], "modules", "Core", f"{row['module']}.lua")
    planted = "".join(f'setenv("{name}", "{value}")\n' for name, value in BAD.items())
    module.write_text(module.read_text() + planted)
    small_omb.source(folder / "omb")
    return folder


def tuned(world: Path, file: Path, *more: str) -> Tuned:
    words = ["tune", "local", "--root", str(world / "root"), "--omb", OMB or str(world / "omb")]
    words += ["--ops", "latency,allreduce", "--sizes", "64:4096", "--to", str(file)]
    state = {"XDG_STATE_HOME": str(world / "state")}
    for number in range(8):  # on a busy machine the budget ends first: the same command goes on
        now = [*words, "--budget", "3m", *(more if number == 0 else ())]
        done = CliRunner().invoke(app, now, env=state)
        if done.exit_code == 0 or "ended before" not in str(done.exception):
            break
        assert not file.exists()
    assert done.exit_code == 0, done.output + repr(done.exception)
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
