"""From ReFrame's report, as captured, to our results."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from mvstack.test.expected import expected_checks
from mvstack.test.results import cases, environment_name, last_lines, problems, skipped_files

DATA = Path(__file__).resolve().parents[1] / "data" / "validate"
PLAN = {"mpi": [{"module": "mpich/4.0.2-ucx"}]}
REPORT = json.loads((DATA / "reframe.json").read_text())
OUTPUT = (DATA / "reframe.out").read_text().splitlines()
CHECKS = expected_checks(DATA / "mishaps", [])


def by_check(report=REPORT, output=OUTPUT, plan=PLAN):
    return {case["check"]: case for case in cases(report, output, CHECKS, plan)}


def test_results_of_a_captured_report():
    found = by_check()
    assert {name: case["result"] for name, case in found.items()} == {
        "Passes one": "pass",
        "Passes two": "pass",
        "Hangs": "fail",
        "Fails": "fail",
        "Crashes": "fail",
        "DoesNotCompile": "fail",
        "Slow": "fail",
        "Skips": "skip",
    }
    assert found["Skips"]["why"] == "there is no such package in the plan"
    assert "it hangs" in found["Hangs"]["why"]
    assert found["Slow"]["figures"][0]["reference"] == 200.0
    assert all(case["seconds"] < 5 for case in found.values())


def test_why_is_one_paragraph():
    assert not any("\n" in case["why"] for case in by_check().values())


def test_a_case_that_the_report_lacks_is_missing():
    report = copy.deepcopy(REPORT)
    tests = report["runs"][0]["testcases"]
    report["runs"][0]["testcases"] = [row for row in tests if "two" not in row["name"]]
    case = by_check(report)["Passes two"]
    assert case["result"] == "missing"
    assert "ReFrame did not say why" in case["why"]


def test_a_second_mpi_build_that_was_not_run_is_missing():
    plan = {"mpi": [*PLAN["mpi"], {"module": "mvapich/4.0-ofi"}]}
    found = cases(REPORT, OUTPUT, CHECKS, plan)
    missing = [case for case in found if case["mpi"] == "mvapich/4.0-ofi"]
    assert {case["result"] for case in missing} == {"missing"}
    assert len(missing) == len(CHECKS)


def test_an_empty_report_is_all_missing():
    assert {case["result"] for case in cases({}, [], CHECKS, PLAN)} == {"missing"}


def test_an_aborted_case_is_a_failure():
    report = copy.deepcopy(REPORT)
    report["runs"][0]["testcases"][0]["result"] = "abort"
    assert [case["result"] for case in by_check(report).values()].count("fail") == 6


def test_what_reframe_says_of_a_file_that_it_skipped():
    said = skipped_files((DATA / "reframe_broken.out").read_text().splitlines())
    assert list(said) == ["broken.py"]
    assert "No module named 'a_module_that_does_not_exist'" in said["broken.py"]


def test_problems_name_failed_and_missing_cases_only():
    found = problems({"cases": cases(REPORT, OUTPUT, CHECKS, PLAN)})
    assert sorted(problem.where.split()[0] for problem in found) == [
        "Crashes",
        "DoesNotCompile",
        "Fails",
        "Hangs",
        "Slow",
    ]


def test_environment_names_are_what_reframe_takes():
    assert environment_name("mpich/4.0.2-ofi") == "mpich-4_0_2-ofi"


def test_a_reason_is_said_once_for_all_that_it_holds_of():
    rows = [(f"Passes {number}", "missing", "no module named polars") for number in range(9)]
    rows.append(("Hello", "fail", "no module named polars"))
    cases = [dict(zip(("check", "result", "why"), row, strict=True), mpi="m/1") for row in rows]
    found = problems({"cases": cases})
    assert [(one.message, one.because) for one in found] == [
        ("did not run", "no module named polars"),
        ("failed", "no module named polars"),
    ]
    assert found[0].where.startswith("Passes 0 with m/1, Passes 1 with m/1")
    assert found[0].where.endswith(" and 3 more")


def test_that_lmod_took_the_place_of_the_default_mpi_is_no_reason(tmp_path):
    reloaded = "The following have been reloaded with a version change:\n  1) mpi/1 => mpi/2\n\n"
    (tmp_path / "err").write_text(reloaded + "no such file\n")
    assert last_lines(tmp_path / "err") == "no such file"
    (tmp_path / "err").write_text(reloaded)
    assert last_lines(tmp_path / "err") == ""
