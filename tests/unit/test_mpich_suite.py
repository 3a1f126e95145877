"""tests/lab/mpich-suite: what counts as known, new and stale, and how verdicts are read."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))
from mpich_known import (
    KNOWN,
    Result,
    Wrong,
    compared,
    put_record,
    read_known,
    read_results,
    record_of,
)
from mpich_suite import Suite, judged, main

MPI = "mvapich 4.0 ch4:ofi"
ROWS = """
- test: coll/bcast 4*
  mpi: mvapich 4.0 ch4:*
  whose: mvapich
  reason: the last element is left out
- test: rma/fence 2
  mpi: [mvapich2 *, mpich 4.0.2 *]
  whose: mpich
  reason: another MPI's
- test: io/slow 2
  mpi: "*"
  whose: machine
  reason: a race with the clock
  sometimes: true
"""


@pytest.fixture
def known(tmp_path):
    (tmp_path / "known.yaml").write_text(ROWS)
    return read_known(tmp_path / "known.yaml")


def verdict(known, *states):
    results = [Result(test, state, 2) for test, state in states]
    return compared(results, known, MPI, ["coll", "io"])


def test_a_failure_with_a_row_is_known_and_one_without_is_new(known):
    found = verdict(
        known,
        ("coll/bcast 4 -count=10", "failed"),
        ("coll/bcast 8", "timed out"),
        ("rma/fence 2", "not built"),
        ("io/slow 2", "passed"),
    )
    assert [one.test for one, _ in found.explained] == ["coll/bcast 4 -count=10"]
    assert [one.test for one in found.new] == ["coll/bcast 8", "rma/fence 2"]
    assert found.stale == []


def test_a_row_whose_test_passes_or_is_gone_is_stale(known):
    passes = verdict(known, ("coll/bcast 4", "passed"), ("io/slow 2", "failed"))
    assert passes.stale == ["known.yaml:2: coll/bcast 4 passes: drop or narrow the row"]
    gone = verdict(known, ("io/slow 2", "passed"))
    assert gone.stale == ["known.yaml:2: no test is called coll/bcast 4*"]


def test_a_row_is_not_stale_where_its_folder_did_not_run(known):
    assert compared([], known, MPI, ["pt2pt"]).stale == []


@pytest.mark.parametrize(
    "row",
    [
        "- {test: a/b 2, mpi: x, whose: nobody, reason: y}",
        "- {test: a/b 2, mpi: x, whose: mpich}",
        "- {test: a/b 2, mpi: x, whose: mpich, reason: y, until: z}",
    ],
)
def test_a_row_that_is_no_row_is_named_by_its_line(tmp_path, row):
    (tmp_path / "known.yaml").write_text(f"# one\n{row}\n")
    with pytest.raises(Wrong, match=r"known\.yaml:2: a row has test, mpi, whose"):
        read_known(tmp_path / "known.yaml")


def test_the_known_failures_of_this_repository_are_rows():
    read_known(KNOWN)


@pytest.mark.parametrize(
    ("tap", "said", "state", "why"),
    [
        ("ok 1 - ./a 2 # time=0.1\n1..1\n", "", "passed", ""),
        ("ok 1 - ./a 2  # SKIP xfail tests disabled\n", "", "skipped", "xfail tests disabled"),
        (
            "not ok 1 - ./a 2 # time=1\n## Test output (expected 'No Errors'):\n## Found 3\n",
            "",
            "failed",
            "Found 3",
        ),
        ("not ok 1 - ./a 2\n## Failed to build a; make: ***\n", "", "not built", "Failed to build"),
        ("not ok 1 - ./a 2\n## APPLICATION TIMED OUT\n", "", "timed out", "APPLICATION"),
        ("TAP version 13\n1..0\n", "Could not open", "failed", "Could not open"),
        ("", "", "failed", "runtests gave no verdict"),
    ],
)
def test_the_verdict_is_that_of_runtests(tap, said, state, why):
    found = judged(tap, said)
    assert found[0] == state and found[1].startswith(why)


def test_tests_are_found_as_runtests_finds_them(tmp_path):
    suite = Suite.__new__(Suite)
    suite.source, suite.build = tmp_path / "source", tmp_path / "build"
    (suite.source / "f77" / "io").mkdir(parents=True)
    (suite.build / "f77").mkdir(parents=True)
    (suite.source / "f77" / "testlist").write_text("the list of the source is not configure's\n")
    (suite.build / "f77" / "testlist").write_text("# all\n!io:all\nio\none\n\n")
    (suite.build / "f77" / "testlist.dtp").write_text("two 4 arg=-n=1 env=A=B timeLimit=30\n")
    (suite.source / "f77" / "io" / "testlist").write_text("three 3 # why\nthree 3\n")
    found = list(suite.tests("f77", ["testlist", "testlist.dtp"]))
    assert [(one.id, one.limit) for one in found] == [
        ("f77/io/three 3", 180),
        ("f77/io/three 3 #2", 180),
        ("f77/one 2", 180),
        ("f77/two 4 -n=1 A=B", 30),
    ]


def test_a_line_that_was_broken_off_is_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"test": "a/b 2", "state": "failed", "ranks": 2}\n{"test": "a/c 2", "sta')
    assert list(read_results(path)) == ["a/b 2"]


def test_the_record_has_one_line_per_mpi(tmp_path, known):
    path = tmp_path / "record.jsonl"
    found = verdict(known, ("coll/bcast 4", "failed"), ("coll/new 4", "timed out"))
    line = record_of([Result("coll/bcast 4", "failed", 999)], found)
    assert line["tests"] == line["failed"] == line["oversubscribed"] == 1
    assert line["known"] == {"coll/bcast 4": "failed"} and line["new"] == {
        "coll/new 4": "timed out"
    }
    for name, tests in (("b", 1), ("a", 2), ("b", 3)):
        put_record(path, {"mpi": name, "tests": tests})
    assert [json.loads(one)["tests"] for one in path.read_text().splitlines()] == [2, 3]


def test_programs_of_no_suite_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    words = ["--mpi", str(tmp_path), "--source", str(tmp_path), "--work", str(tmp_path / "work")]
    with pytest.raises(Wrong, match="nothing was configured there"):
        main([*words, "--programs", str(tmp_path / "none")])
    assert not (tmp_path / "work").exists()
