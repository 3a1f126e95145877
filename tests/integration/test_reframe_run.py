"""How run_checks tells a check that failed from one that passed, and from one that never ran."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checks_tree import DATA, LMOD, empty_tree

from mvstack.support.errors import CheckFailed
from mvstack.test.results import problems
from mvstack.test.run import run_checks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LMOD.exists(), reason="Lmod is not installed (apt: lmod)"),
]


@pytest.fixture
def tree(tmp_path):
    plan = empty_tree(tmp_path / "tree")
    return plan, tmp_path / "out"


def by_check(results):
    return {case["check"]: case for case in results["cases"]}


def test_each_mishap_is_told_apart(tree):
    lines = []
    results = run_checks(*tree, ["quick", "hang"], lines.append, checks=DATA / "mishaps")
    cases = by_check(results)
    assert {name: case["result"] for name, case in cases.items()} == {
        "Passes one": "pass",
        "Passes two": "pass",
        "Hangs": "fail",
        "Fails": "fail",
        "Crashes": "fail",
        "DoesNotCompile": "fail",
        "Slow": "fail",
        "Skips": "skip",
    }
    assert "did not return within its limit of 1 s" in cases["Hangs"]["why"]
    assert cases["Fails"]["why"].startswith("the answer is 41; look at the question")
    assert "stderr ends: first / the library is gone" in cases["Fails"]["why"]
    assert "exit code 3" in cases["Crashes"]["why"] and "no memory" in cases["Crashes"]["why"]
    assert "bad.c:1" in cases["DoesNotCompile"]["why"]
    assert "bandwidth_1024" in cases["Slow"]["why"]
    assert cases["Slow"]["figures"] == [
        {
            "name": "bandwidth",
            "size": 1024,
            "value": 100.0,
            "unit": "MB/s",
            "reference": 200.0,
            "allowed": "-20 % to any",
        }
    ]
    why = "there is no such package in the plan"
    assert results["skipped"] == [{"what": "Skips with mpich/4.0.2-ucx", "why": why}]
    assert cases["Passes one"]["description"] == "It passes, twice."
    assert results["reframe"].startswith("4.")
    assert any("RUN" in line for line in lines)
    assert len(problems(results)) == 5
    assert json.loads((tree[1] / "results.json").read_text()) == results
    assert (tree[1] / "junit.xml").exists()


def test_tags_choose(tree):
    results = run_checks(*tree, ["good"], checks=DATA / "mishaps")
    assert set(by_check(results)) == {"Passes one", "Passes two"}
    assert problems(results) == []


def test_no_check_with_such_a_tag(tree):
    with pytest.raises(CheckFailed, match="no check has one of the tags smok"):
        run_checks(*tree, ["smok"])


def test_a_check_that_cannot_be_imported_is_missing_and_an_error(tree):
    with pytest.raises(CheckFailed) as error:
        run_checks(*tree, ["smoke"], checks=DATA / "broken")
    assert "broken.py" in str(error.value)
    assert "a_module_that_does_not_exist" in str(error.value)
    assert "ReFrame ran 1 of 2 checks" in str(error.value)
    cases = by_check(json.loads((tree[1] / "results.json").read_text()))
    assert (cases["Broken"]["result"], cases["Fine"]["result"]) == ("missing", "pass")


def settings_that_say(text, folder, monkeypatch):
    (folder / "settings.py").write_text(text)
    monkeypatch.setattr("mvstack.test.run.CHECKS", folder)


def test_settings_that_cannot_be_read_are_an_error(tree, tmp_path, monkeypatch):
    plan, out = tree
    settings_that_say("this is not Python\n", tmp_path, monkeypatch)
    with pytest.raises(CheckFailed) as error:
        run_checks(plan, out, ["good"], checks=DATA / "mishaps")
    both = "Passes one with mpich/4.0.2-ucx, Passes two with mpich/4.0.2-ucx: did not run"
    assert both in str(error.value)


def test_a_module_that_does_not_load_fails_each_check(tree, tmp_path):
    plan, out = tree
    (tmp_path / "tree/modules/Core/mpich/4.0.2-ucx.lua").unlink()
    results = run_checks(plan, out, ["good"], checks=DATA / "mishaps")
    assert {case["result"] for case in results["cases"]} == {"fail"}
    assert "mpich/4.0.2-ucx" in results["cases"][0]["why"]


def test_an_older_report_does_not_pass_for_a_new_one(tree, tmp_path, monkeypatch):
    plan, out = tree
    run_checks(plan, out, ["good"], checks=DATA / "mishaps")
    settings_that_say("raise SystemExit(0)\n", tmp_path, monkeypatch)
    with pytest.raises(CheckFailed):
        run_checks(plan, out, ["good"], checks=DATA / "mishaps")


def sleepers() -> set[str]:
    said = subprocess.run(["pgrep", "-f", "^sleep 600$"], capture_output=True, text=True)
    return set(said.stdout.split())


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_an_interruption_ends_every_job(tree):
    plan, out = tree
    before = sleepers()

    def interrupt(line: str) -> None:
        if "Hangs" in line and "RUN" in line:
            wait_for(lambda: sleepers() - before)
            raise KeyboardInterrupt

    patient = DATA.joinpath("mishaps/mishaps.py").read_text().replace('"1s"', '"300s"')
    checks = out.parent / "checks"
    checks.mkdir()
    (checks / "patient.py").write_text(patient)
    with pytest.raises(KeyboardInterrupt):
        run_checks(plan, out, ["hang"], interrupt, checks=checks)
    assert sleepers() <= before


def test_a_killed_caller_leaves_no_job_behind(tree, tmp_path):
    plan = tree[0]
    before = sleepers()
    patient = DATA.joinpath("mishaps/mishaps.py").read_text().replace('"1s"', '"300s"')
    checks = tmp_path / "checks"
    checks.mkdir()
    (checks / "patient.py").write_text(patient)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    program = (
        "import json, sys; from pathlib import Path; from mvstack.test.run import run_checks\n"
        "here = Path(sys.argv[1]); plan = json.loads((here / 'plan.json').read_text())\n"
        "run_checks(plan, here / 'out', ['hang'], checks=here / 'checks')\n"
    )
    source = str(Path(__file__).resolve().parents[2] / "src")
    caller = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], env=os.environ | {"PYTHONPATH": source}
    )
    wait_for(lambda: sleepers() - before)
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    wait_for(lambda: sleepers() <= before)


def test_lines_arrive_while_it_runs(tree):
    plan, out = tree
    arrived: list[float] = []
    run_checks(
        plan,
        out,
        ["hang", "good"],
        lambda line: arrived.append(time.monotonic()),
        checks=DATA / "mishaps",
    )
    assert arrived[-1] - arrived[0] > 0.5


STEADY = '''"""A figure as fast as the file beside this one says."""

import pathlib

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import performance_function, sanity_function


@rfm.simple_test
class Steady(rfm.RunOnlyRegressionTest):
    """Its bandwidth is read from a file."""

    valid_systems = ["*"]
    valid_prog_environs = ["+mpi"]
    sourcesdir = None
    local = True
    executable = "true"
    tags = {"steady"}

    @sanity_function
    def passes(self):
        return True

    @performance_function("MB/s")
    def bandwidth_1024(self):
        return sn.defer(float(pathlib.Path(__file__).with_name("figure").read_text()))
'''


def test_a_figure_20_percent_down_is_told_by_the_history(tmp_path):
    """`mvstack test` as a user calls it; the quiet machine's earlier runs differ by 2 %."""
    tree, checks = tmp_path / "root" / "2026.11" / "local", tmp_path / "site" / "checks"
    plan = empty_tree(tree) | {"root": str(tmp_path / "root"), "compiler": {}}
    checks.mkdir(parents=True)
    (checks / "steady.py").write_text(STEADY)
    (tree / "records").mkdir()
    (tree / "records" / "plan.json").write_text(json.dumps(plan))

    def tested(figure):
        (checks / "figure").write_text(str(figure))
        site, root = ["--site", tmp_path / "site"], ["--root", tmp_path / "root"]
        words = ["test", "local", "--release", "2026.11", "--tag", "steady", "--history"]
        command = [sys.executable, "-m", "mvstack", *site, *words, *root]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    first = tested(10000.0)
    assert first.returncode == 0 and "slower" not in first.stdout, first.stderr
    (kept,) = (tree / "records" / "results").glob("*.json")
    for number in range(4):
        text = kept.read_text().replace("10000.0", f"{9950.0 - 50 * number}")
        (kept.parent / f"2026-11-0{number + 1}T000000Z.json").write_text(text)
    said = tested(8000.0)
    told = "bandwidth of 1024 bytes is 8000 MB/s; 5 earlier runs had 9800 to 10000 MB/s"
    assert said.returncode == 1 and f"slower: Steady with mpich/4.0.2-ucx: {told}" in said.stdout
    assert "became slower" in said.stderr and told in said.stderr
    assert tested(9000.0).returncode == 0  # within 10 % of the worst
