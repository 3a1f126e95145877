"""What GitLab reads of a pipeline: metrics as its own parser splits them, and JUnit XML."""

from __future__ import annotations

import re
import shlex
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvstack.ci.measure import build_junit, checks_junit, metric_name, metrics
from mvstack.support.errors import BuildFailed, Problem, Refused

MPI = "mvapich/4.0-ucx"


def case(check: str, result: str, **more: Any) -> dict[str, Any]:
    own = {"check": check, "mpi": MPI, "result": result, "why": "", "seconds": 1.5, "figures": []}
    return {**own, **more}


def figure(name: str, value: float | None, unit: str, size: int | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "size": size}


RESULTS = {
    "seconds": 12.5,
    "cases": [
        case(
            "Benchmark latency",
            "pass",
            figures=[figure("latency", 1.2, "us", 8), figure("latency", 1.3, "us", 16)],
        ),
        case("Hpcc", "pass", figures=[figure("HPL_Tflops", 0.1, "Tflop/s")]),
        case("WorldSize 2", "fail", why="3 ranks instead of 2; files: /x"),
        case("MpiIo", "missing", why="ReFrame did not run it", seconds=None),
        case("Cuda", "skip", why="no GPU here"),
    ],
}


def as_gitlab_reads(text: str) -> dict[str, str]:
    """Gitlab::Ci::Parsers::Metrics::Generic: comments go, then a line is split as a shell would."""
    rows = [shlex.split(re.sub("#.*$", "", line)) for line in text.splitlines()]
    return {row[0]: row[1] for row in rows if len(row) > 1}


SAMPLE = re.compile(
    r'([a-z_][a-z0-9_]*)(?:\{([a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*)\})? -?[0-9.e+-]+'
)


def assert_openmetrics(text: str) -> None:
    """The grammar of OpenMetrics as far as it is used: families together, each typed, then EOF."""
    lines = text.splitlines()
    assert text.endswith("\n# EOF\n") and lines.pop() == "# EOF"
    family, seen, samples = "", set(), set()
    for line in lines:
        if line.startswith("#"):
            family = line.removeprefix("# TYPE ").removesuffix(" gauge")
            assert re.fullmatch("[a-z_][a-z0-9_]*", family) and family not in seen
            seen.add(family)
            continue
        row = SAMPLE.fullmatch(line)
        assert row and row[1] == family, line
        assert line.rpartition(" ")[0] not in samples
        samples.add(line.rpartition(" ")[0])


def test_figures_checks_and_seconds_have_their_units_in_their_names() -> None:
    text = metrics(RESULTS)
    assert_openmetrics(text)
    own = f"check=Benchmark latency,mpi={MPI}"
    found = as_gitlab_reads(text)
    assert found[f"mvstack_latency_microseconds{{{own},bytes=8}}"] == "1.2"
    assert found[f"mvstack_latency_microseconds{{{own},bytes=16}}"] == "1.3"
    assert found[f"mvstack_hpl_tflops_teraflops{{check=Hpcc,mpi={MPI}}}"] == "0.1"
    assert found[f"mvstack_check_seconds{{{own}}}"] == "1.5"
    assert found["mvstack_tests_seconds"] == "12.5"
    counts = {word: found[f"mvstack_checks{{result={word}}}"] for word in ("passed", "failed")}
    assert counts == {"passed": "2", "failed": "1"}
    assert found["mvstack_checks{result=skipped}"] == found["mvstack_checks{result=missing}"] == "1"
    assert len(found) == 4 + 1 + 4 + 3


def test_a_figure_without_a_value_is_left_out() -> None:
    bare = {"seconds": 1, "cases": [case("x", "pass", figures=[figure("latency", None, "us")])]}
    assert "latency" not in metrics(bare)


@pytest.mark.parametrize(
    ("name", "unit", "metric"),
    [
        ("bandwidth", "MB/s", "bandwidth_megabytes_per_second"),
        ("rate", "messages/s", "rate_messages_per_second"),
        ("load", "%", "load_percent"),
        ("ranks", "", "ranks"),
        ("Star-STREAM Triad", "GB/s", "star_stream_triad_gigabytes_per_second"),
    ],
)
def test_units_are_written_out(name: str, unit: str, metric: str) -> None:
    assert metric_name(name, unit) == metric


@given(check=st.text(max_size=20), mpi=st.text(max_size=20))
def test_whatever_a_check_is_called_its_line_is_read_whole(check: str, mpi: str) -> None:
    text = metrics({"seconds": 1, "cases": [case(check, "pass", mpi=mpi)]})
    assert_openmetrics(text)
    assert len(as_gitlab_reads(text)) == 6
    ElementTree.fromstring(checks_junit({"cases": [case(check, "fail", mpi=mpi, why=check)]}))


def row(package: str, result: str, **more: Any) -> dict[str, Any]:
    own = {"package": package, "version": "1.0", "mpi": MPI, "seconds": 2.25, "log": "/l/x.log"}
    return {**own, "result": result, **more}


def test_each_package_is_a_case_and_a_failed_one_says_its_last_lines() -> None:
    rows = [
        row("HPCC", "built"),
        row("IMB", "cached", cache="/site/cache"),
        row("OMB", "failed", said="make: \x1b[31m*** <x> & Error 1\x00"),
    ]
    text = build_junit("build:apps", rows, BuildFailed(Problem("no luck", "OMB.eb")))
    (suite,) = ElementTree.fromstring(text)
    assert suite.attrib == {
        "name": "build:apps", "tests": "3", "failures": "1", "errors": "0", "skipped": "0",
        "time": "6.750",
    }  # fmt: skip
    good, cached, bad = suite
    assert good.attrib == {"classname": MPI, "name": "HPCC 1.0", "time": "2.250"} and not len(good)
    assert cached.findtext("system-out") == "taken from /site/cache"
    failure = bad.find("failure")
    assert failure is not None and failure.get("message") == "OMB 1.0 was not built"
    assert failure.text == "make: [31m*** <x> & Error 1\nlog: /l/x.log"


def test_a_job_that_built_nothing_says_why() -> None:
    error = Refused(Problem("is needed", "MPICH.eb", todo="see"), Problem("is too", "GCC.eb"))
    (suite,) = ElementTree.fromstring(build_junit("build:apps", [], error))
    assert [one.get("name") for one in suite] == ["MPICH.eb", "GCC.eb"]
    assert suite.get("errors") == "2" and "to go on" in (suite.findtext("testcase/error") or "")


def test_checks_are_cases_of_their_mpi() -> None:
    (suite,) = ElementTree.fromstring(checks_junit(RESULTS))
    assert suite.get("name") == MPI
    found = {one.get("name"): [child.tag for child in one] for one in suite}
    assert found == {
        "Benchmark latency": [], "Hpcc": [], "WorldSize 2": ["failure"], "MpiIo": ["error"],
        "Cuda": ["skipped"],
    }  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.get("message") == "3 ranks instead of 2"
    assert ElementTree.fromstring(checks_junit({"cases": []})).tag == "testsuites"
