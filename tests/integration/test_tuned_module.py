"""Checks of what was tuned, in Lmod and ReFrame, on an MPI whose module sets it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checks_tree import LMOD
from measured_tree import measured

from mvstack.render.templates import template
from mvstack.test.run import CHECKS, run_checks

SIZES = (8, 1024, 16384, 65536, 1 << 20)
TUNING = {"UCX_RNDV_THRESH": {"value": "16384", "why": "measured", "source": "here"}}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan of a tree whose MPI's module sets TUNING, which the plan does not say."""
    found = measured(tmp_path_factory.mktemp("tuned") / "root")
    row = found["mpi"][0]
    module = Path(found["tree"], "modules", "Core", f"{row['module']}.lua")
    build = SimpleNamespace(module=row["module"], environment={}, tuning=TUNING)
    module.write_text(module.read_text() + template("tuned.lua", build=build))
    return found


def run(check: str, plan: dict[str, Any], folder: Path, **row: Any) -> dict[str, Any]:
    """The one case of a check; a benchmark's is latency."""
    changed = plan | {"mpi": [plan["mpi"][0] | row]}
    checks = folder / "checks"
    shutil.copytree(CHECKS, checks, ignore=shutil.ignore_patterns("apps", "__pycache__"))
    for path in checks.glob("*.py"):
        text = path.read_text()
        if path.stem == "benchmarks" and check == "tuned":
            path.write_text(text.replace("@rfm.simple_test", ""))
        elif "simple_test" in text and path.stem != check:
            path.unlink()
        else:
            path.write_text(text.replace('["latency", "bandwidth", "allreduce"]', '["latency"]'))
    (case,) = run_checks(changed, folder / "out", [], checks=checks)["cases"]
    return dict(case)


def identity(plan: dict[str, Any], folder: Path, **row: Any) -> dict[str, Any]:
    return run("identity", plan, folder, **row)


def test_what_was_tuned_and_planned_passes(plan: dict[str, Any], tmp_path: Path) -> None:
    case = identity(plan, tmp_path, tuning=TUNING)
    assert case["result"] == "pass", case["why"]


def test_the_same_fails_where_the_plan_does_not_say_it(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    case = identity(plan, tmp_path)
    assert case["result"] == "fail" and "UCX_RNDV_THRESH is 16384" in case["why"]


def test_untuned_it_is_not_set_and_not_expected(
    plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVAPICH_STACK_UNTUNED", "1")
    case = identity(plan, tmp_path, tuning=TUNING)
    assert case["result"] == "pass", case["why"]


def test_a_value_of_the_users_stays_through_load_swap_and_unload(tmp_path: Path) -> None:
    for name, value in (("one", "16384"), ("other", "65536")):
        row = {"value": value, "why": "", "source": ""}
        build = SimpleNamespace(module=f"{name}/1", environment={}, tuning={"UCX_RNDV_THRESH": row})
        file = tmp_path / name / "1.lua"
        file.parent.mkdir()
        file.write_text('family("mpi")\n' + template("tuned.lua", build=build))
    words = ("load one", "load other", "load other", "unload other")
    tell = "echo ${UCX_RNDV_THRESH:-none} $MVAPICH_STACK_TUNED"
    script = "".join(f"module {one} >/dev/null 2>&1\n{tell}\n" for one in words)
    begin = f"source {LMOD}\nmodule use {tmp_path}\n{script}"
    begin += f"export UCX_RNDV_THRESH=64\n{script}"
    done = subprocess.run(["bash", "-c", begin], check=True, capture_output=True, text=True)
    plain = ["16384 one/1", "65536 other/1", "65536 other/1", "none"]
    own = ["64 one/1", "64 other/1", "64 other/1", "64"]
    assert [line.strip() for line in done.stdout.splitlines()] == plain + own


def test_a_module_that_lacks_one_fails(plan: dict[str, Any], tmp_path: Path) -> None:
    more = {"UCX_TLS": {"value": "posix,self", "why": "", "source": ""}}
    case = identity(plan, tmp_path, tuning=TUNING | more)
    assert case["result"] == "fail" and "UCX_TLS is not set" in case["why"]


@contextlib.contextmanager
def also_set(plan: dict[str, Any], tuning: dict[str, dict[str, str]]) -> Iterator[None]:
    """The module sets ``tuning``, too."""
    name = plan["mpi"][0]["module"]
    module = Path(plan["tree"], "modules", "Core", f"{name}.lua")
    before = module.read_text()
    build = SimpleNamespace(module=name, environment={}, tuning=tuning)
    module.write_text(before + template("tuned.lua", build=build))
    try:
        yield
    finally:
        module.write_text(before)


def test_a_table_is_named_by_its_place_in_the_tree(plan: dict[str, Any], tmp_path: Path) -> None:
    row = {"value": "tuning/0123.json", "table": "collectives/x.json", "why": "", "source": ""}
    more = {"MPIR_CVAR_OF_NO_MPI_JSON_FILE": row}  # Debian's MPICH reads tables of another kind
    table = Path(plan["tree"], "rendered", "tuning", "0123.json")
    with also_set(plan, more):
        case = identity(plan, tmp_path / "planned", tuning=TUNING | more)
        assert case["result"] == "pass", case["why"]
        other = {name: one | {"value": "tuning/4567.json"} for name, one in more.items()}
        case = identity(plan, tmp_path / "other", tuning=TUNING | other)
        assert case["result"] == "fail" and f"JSON_FILE is {table}" in case["why"]


@pytest.mark.parametrize(
    ("tuning", "result"),
    [
        (TUNING, "pass"),
        ({"UCX_TLS": {"value": "tcp,self", "why": "measured", "source": "here"}}, "fail"),
    ],
)
def test_what_is_slower_than_the_plain_build_fails(
    plan: dict[str, Any], tmp_path: Path, tuning: dict[str, dict[str, str]], result: str
) -> None:
    with also_set(plan, tuning):
        case = run("tuned", plan, tmp_path, tuning=tuning)
    assert case["result"] == result, case["why"]
    first, *others = case["figures"]
    assert (first["name"], first["size"]) == ("tuned_latency", None)
    told = {(one["name"], one["size"]): one["value"] for one in others}
    assert told.keys() == {(f"{way}_latency", size) for way in ("plain", "tuned") for size in SIZES}
    assert ("times as fast with what was tuned as without" in case["why"]) == (result == "fail")
