"""What GitLab shows of a pipeline: figures as OpenMetrics text, packages and checks as JUnit XML.

Pure. The text of metrics is that of OpenMetrics 1.0; GitLab compares it between branches line by
line, splits each as a shell would, takes what follows a ``#`` for a comment (its parser
Gitlab::Ci::Parsers::Metrics::Generic) and reads neither types nor units: so units are in the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.etree import ElementTree as Xml

from mvstack.support.errors import MvstackError

Json = dict[str, Any]
RESULTS = {"pass": "passed", "fail": "failed", "missing": "missing", "skip": "skipped"}
_UNITS = {
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "MB/s": "megabytes_per_second",
    "GB/s": "gigabytes_per_second",
    "Gflop/s": "gigaflops",
    "Tflop/s": "teraflops",
    "GUP/s": "gigaupdates_per_second",
}
# What XML 1.0 cannot hold, not even escaped; logs hold it (colours, progress bars).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def metrics(results: Json) -> str:
    """OpenMetrics text of the results of `mvstack test` (:mod:`mvstack.test.results`).

    ``mvstack_checks`` counts them by result, ``mvstack_tests_seconds`` is the time of all,
    ``mvstack_check_seconds`` that of each, and each figure is a metric of its own, e.g.
    ``mvstack_latency_microseconds{check="Benchmark latency",mpi="mvapich/4.0-ucx",bytes="8"} 1.2``.
    """
    found: dict[str, list[str]] = {}

    def add(name: str, value: float, **labels: str) -> None:
        shown = ",".join(f'{key}="{_label(text)}"' for key, text in labels.items() if text)
        found.setdefault(f"mvstack_{name}", []).append(
            f"mvstack_{name}{{{shown}}} {value}" if shown else f"mvstack_{name} {value}"
        )

    cases = results["cases"]
    for result, word in RESULTS.items():
        add("checks", sum(case["result"] == result for case in cases), result=word)
    add("tests_seconds", results["seconds"])
    for case in cases:
        own = {"check": case["check"], "mpi": case["mpi"]}
        if case["seconds"] is not None:
            add("check_seconds", case["seconds"], **own)
        for figure in case["figures"]:
            if figure["value"] is not None:
                size = "" if figure["size"] is None else str(figure["size"])
                add(metric_name(figure["name"], figure["unit"]), figure["value"], **own, bytes=size)
    lines = [
        line
        for name, samples in sorted(found.items())
        for line in (f"# TYPE {name} gauge", *samples)
    ]
    return "\n".join([*lines, "# EOF"]) + "\n"


def metric_name(name: str, unit: str) -> str:
    """The metric of a figure, its unit last: ``latency`` in ``us`` → ``latency_microseconds``."""
    word = _UNITS.get(unit) or unit.replace("/s", "_per_second").replace("%", "percent")
    return "_".join(part for part in (_plain(name), _plain(word)) if part)


def build_junit(name: str, rows: Iterable[Json], error: MvstackError | None = None) -> str:
    """JUnit XML of a job's packages: a test case for each row of builds.jsonl.

    A failed row's text is its ``said`` (:func:`mvstack.ci.build.rows_of`). ``error`` is what ended
    the job; it becomes a case of its own when no row failed, as when something was not handed over.
    """
    suite = Xml.Element("testsuite", name=_text(name))
    failed = False
    for row in rows:
        title = f"{row['package']} {row['version']}"
        case = _case(suite, row.get("mpi") or name, title, row.get("seconds") or 0.0)
        if row["result"] == "failed":
            failed = True
            said = str(row.get("said", ""))
            _child(case, "failure", f"{title} was not built", f"{said}\nlog: {row.get('log', '')}")
        elif taken := row.get("cache") or row.get("from"):
            Xml.SubElement(case, "system-out").text = _text(f"taken from {taken}")
    if error is not None and not failed:
        for number, problem in enumerate(error.problems, 1):
            case = _case(suite, name, problem.where or f"problem {number}", 0.0)
            _child(case, "error", problem.message, "\n".join(problem.lines()))
    return _whole([suite])


def checks_junit(results: Json) -> str:
    """JUnit XML of the results of `mvstack test`: a suite for each MPI build, a case a check."""
    suites: dict[str, Xml.Element] = {}
    for row in results["cases"]:
        suite = suites.setdefault(row["mpi"], Xml.Element("testsuite", name=_text(row["mpi"])))
        case = _case(suite, row["mpi"], row["check"], row["seconds"] or 0.0)
        if row["result"] == "skip":
            Xml.SubElement(case, "skipped", message=_text(row["why"]))
        elif row["result"] != "pass":
            tag = "failure" if row["result"] == "fail" else "error"
            _child(case, tag, row["why"].partition(";")[0], row["why"])
    return _whole(list(suites.values()))


def _case(suite: Xml.Element, group: str, name: str, seconds: float) -> Xml.Element:
    words = {"classname": _text(group), "name": _text(name), "time": f"{seconds:.3f}"}
    return Xml.SubElement(suite, "testcase", words)


def _child(case: Xml.Element, tag: str, message: str, text: str) -> None:
    Xml.SubElement(case, tag, message=_text(message)).text = _text(text)


def _whole(suites: Sequence[Xml.Element]) -> str:
    """The document; each suite with its counts and its seconds."""
    for suite in suites:
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        for tag, word in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            suite.set(word, str(len(suite.findall(f"testcase/{tag}"))))
        suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")
    top = Xml.Element("testsuites")
    top.extend(suites)
    Xml.indent(top, " ")
    return Xml.tostring(top, "unicode", xml_declaration=True) + "\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("", text)


def _plain(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")


def _label(text: str) -> str:
    """A label's value: no character that OpenMetrics, a shell or GitLab reads otherwise."""
    return re.sub(r"[\s\"'\\#]+", " ", text).strip()
