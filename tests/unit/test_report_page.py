"""The HTML page: whole, safe, the same each time, readable without its plots."""

import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.font_manager  # noqa: F401 - starts fc-list once, here and in no test
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from mvstack.cli.stack import report_tree
from mvstack.report.page import render, write_html
from mvstack.report.summary import gather
from mvstack.report.terminal import print_report
from mvstack.support.errors import InvalidInput
from mvstack.support.units import clean, number, size, unit_name

SAMPLES = Path(__file__).parents[1] / "data" / "report"
BOTH = ["local-fallback", "mvapich-two-devices"]
VOID = {"meta", "link", "img", "br", "hr", "input", "source", "area", "base", "col", "embed"}
LOADS = {"script", "link", "img", "iframe", "object", "embed", "base", "audio", "video", "image"}


class Page(HTMLParser):
    """Reads a page strictly: every element closed where it should be, no attribute twice."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice: {names}"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)

    def said(self):
        return " ".join(" ".join(self.text).split())

    def ids(self):
        return [attrs["id"] for _, attrs in self.elements if "id" in attrs]


@pytest.fixture(scope="module")
def pages():
    return {name: render(gather(SAMPLES / name)) for name in [*BOTH, "none"]}


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(SAMPLES / "mvapich-two-devices", tmp_path / "tree")
    return tmp_path / "tree"


@pytest.mark.parametrize("name", [*BOTH, "none"])
def test_the_page_is_well_formed_and_its_references_resolve(pages, name):
    page = Page(pages[name])
    assert len(page.ids()) == len(set(page.ids()))
    referred = {
        target
        for _, attrs in page.elements
        for value in attrs.values()
        for target in re.findall(r"url\(#([^)]+)\)", value or "")
    }
    referred |= {a["href"][1:] for _, a in page.elements if a.get("href", "").startswith("#")}
    referred |= {a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a}
    assert referred <= set(page.ids())
    # The plots of one page are drawn with many references; an empty set would prove nothing.
    assert name == "none" or len(referred) > 10


@pytest.mark.parametrize("name", [*BOTH, "none"])
def test_the_page_loads_nothing(pages, name):
    page = Page(pages[name])
    assert LOADS.isdisjoint(tag for tag, _ in page.elements)
    for tag, attrs in page.elements:
        assert not [key for key in attrs if key.startswith("on")], tag
        assert not {"src", "srcset", "data", "poster", "action"} & set(attrs), tag
        assert attrs.get("href", "#").startswith("#"), tag
    assert not re.search(r"https?:|@import|//\w", pages[name])
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("name", BOTH)
def test_every_hash_reason_and_source_is_on_the_page(pages, name):
    said = Page(pages[name]).said()
    records = SAMPLES / name / "records"
    for line in (records / "builds.jsonl").read_text().splitlines():
        for source in json.loads(line)["sources"]:
            assert source["sha256"] in said
            assert source["note"] in said
    plan = json.loads((records / "plan.json").read_text())
    for mpi in plan["mpi"]:
        for row in [*mpi["reasons"], *mpi["environment"].values()]:
            assert row["why"].replace("`", "") in said
            assert row["source"] in said


@pytest.mark.parametrize("name", BOTH)
def test_every_figure_is_in_a_table_with_its_unit(pages, name):
    data = gather(SAMPLES / name)
    tables = re.findall(r'<table class="data">.*?</table>', pages[name], re.S)
    assert len(tables) == len(data.plots) == 3
    for table, plot in zip(tables, data.plots, strict=True):
        for line in plot.lines:
            assert len(line.points) >= 19
            for point in line.points:
                (row,) = re.findall(rf'<th scope="row">{size(point.size)}</th>(.*)</tr>', table)
                for value in (point.value, point.reference, point.high):
                    assert value is None or f"{number(value)} {unit_name(plot.unit)}<" in row


@pytest.mark.parametrize("name", BOTH)
def test_each_plot_has_a_text_alternative_and_a_line_for_each_mpi(pages, name):
    page = Page(pages[name])
    data = gather(SAMPLES / name)
    labels = [a["aria-label"] for t, a in page.elements if t == "svg" and a.get("role") == "img"]
    assert len(labels) == 3
    for label, plot in zip(labels, data.plots, strict=True):
        assert label.startswith(f"{plot.title} against message size")
        assert all(line.label in label for line in plot.lines)
    groups = [id for id in page.ids() if re.fullmatch(r"plot\d+-line\d+", id)]
    assert len(groups) == 3 * len(data.mpi)


def test_a_point_tells_its_value_when_it_is_pointed_at(pages):
    point = gather(SAMPLES / "local-fallback").plots[0].lines[0].points[3]
    assert point.size == 8
    assert "<title>8 B: 0.354 µs (mpich/4.0.2-ofi)</title>" in pages["local-fallback"]


def test_colours_follow_the_page(pages):
    svgs = re.findall(r"<svg.*?</svg>", pages["mvapich-two-devices"], re.S)
    assert svgs
    for svg in svgs:
        assert not re.search(r"#[0-9a-f]{6}", svg), "a fixed colour is unreadable in the dark"
        assert "DejaVu" not in svg


def test_the_fallback_is_the_first_and_the_last_line(pages):
    sentence = gather(SAMPLES / "local-fallback").fallback
    said = Page(pages["local-fallback"]).said()
    assert said.startswith(sentence)
    assert said.endswith(sentence)
    assert "stands in" not in Page(pages["mvapich-two-devices"]).said()


def test_what_stands_between_backticks_is_code_and_stays_text(tree):
    plan = json.loads((tree / "records" / "plan.json").read_text())
    plan["fallback"] = "Run `mvstack <b>` & `x`."
    plan["mpi"][0]["reasons"] = [{"what": "a", "why": "one ` too many", "source": "`s`"}]
    (tree / "records" / "plan.json").write_text(json.dumps(plan))
    made = render(gather(tree))
    assert "Run <code>mvstack &lt;b&gt;</code> &amp; <code>x</code>." in made
    assert "one ` too many" in Page(made).said()


def test_failures_and_skips_give_their_reason(pages):
    said = Page(pages["mvapich-two-devices"]).said()
    assert "latency at 16 KiB: 12.4 us, reference 8.62 us" in said
    assert "the launcher printed nothing for 300 s" in said
    assert "the tree is on a file system without locks" in said
    assert "not upstream's bytes" in said
    assert "1 check failed, 1 missing, 17 passed, 1 skipped" in said


def test_how_to_load_it_is_on_the_page(pages):
    said = Page(pages["local-fallback"]).said()
    assert "module load mvapich-stack/2026.11 hpcc/1.5.0" in said
    assert "mpiexec -n 2 ./program" in said
    assert "There is nothing to load yet" in Page(pages["none"]).said()


def test_a_page_that_cannot_be_written_is_an_error_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput) as caught:
        write_html(gather(SAMPLES / "none"), tmp_path / "file" / "report.html")
    assert "file" in str(caught.value)
    assert "to go on" in str(caught.value)


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.mkdir()
    (target / "in-the-way").write_text("")
    with pytest.raises(InvalidInput):
        write_html(gather(SAMPLES / "none"), target)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def _replace_texts(value, text):
    """``value`` with every text in it, also a dictionary's keys of settings, replaced."""
    if isinstance(value, dict):
        return {key: _replace_texts(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_texts(item, text) for item in value]
    return text if isinstance(value, str) else value


def _poison(tree, text):
    """Put ``text`` in the place of every text of every record of ``tree``."""
    records = tree / "records"
    for path in [records / "plan.json", *sorted((records / "results").glob("*.json"))]:
        value = _replace_texts(json.loads(path.read_text()), text)
        if "mpi" in value:
            value["mpi"][0]["environment"] = {text: {"value": text, "why": text, "source": text}}
        for case in value.get("cases", []):
            case["result"] = "fail"
        path.write_text(json.dumps(value))
    for name in ("builds.jsonl", "sources.jsonl"):
        rows = [json.loads(line) for line in (records / name).read_text().splitlines()]
        rows = [_replace_texts(row, text) for row in rows]
        rows[0]["steps"] = {text: 1.0}
        (records / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


BAD = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</style></title></svg><b>",
    "{{ 7 * 7 }}{% raw %}",
    "$x^2$ \\frac",
    "<!-- ]]> &amp; &#x3c;",
    "\x1b[31m\x00\u202eRTL",
    "\ud800",
    "",
    "x" * 5000,
    "日本語 🚀 é",
]


@pytest.mark.parametrize("text", BAD)
def test_no_text_of_a_record_becomes_part_of_the_page(tree, text):
    _poison(tree, text)
    data = gather(tree)
    assert data.plots  # so that labels of plots are poisoned too
    made = render(data)
    made.encode("utf-8")
    page = Page(made)
    assert {"script", "img", "b"} & {tag for tag, _ in page.elements} <= {"b"}
    assert "49" not in re.findall(r">(49)<", made)
    shown = " ".join(clean(text).split())
    assert shown in " ".join(page.said().split())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", made)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=30))
def test_any_text_leaves_the_page_whole(tmp_path, text):
    tree = tmp_path / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(SAMPLES / "mvapich-two-devices", tree)
    _poison(tree, text)
    made = render(gather(tree))
    assert LOADS.isdisjoint(tag for tag, _ in Page(made).elements)


@pytest.mark.parametrize(
    "values",
    [
        {1: 0.0, 2: -1.0},
        {0: 1.0, 1: 2.0, 2: None},
        {8: 1e-300, 16: 1e300},
        {8: 5.0, 16: 5.0},
        {1: 1.0, 10**30: 2.0},
        {7: 1.0, 7_000_001: float("nan")},
        {3: 1.0, 4: float("inf")},
        {5: 1.0, 6: 1.0, 7: 1.0},
    ],
)
def test_any_figure_can_be_shown(tree, values):
    shutil.rmtree(tree / "records" / "results")
    (tree / "records" / "results").mkdir()
    figures = [{"name": "t", "size": size, "value": v, "unit": "us"} for size, v in values.items()]
    case = {"check": "A", "mpi": "mvapich/4.0-ofi", "result": "pass", "figures": figures}
    run = {"started": "2026-12-01T00:00:00Z", "cases": [case]}
    (tree / "records" / "results" / "r.json").write_text(json.dumps(run))
    data = gather(tree)
    assert len(data.plots) == 1
    said = Page(render(data)).said()
    drawable = any(0 < size < 2**60 and v and 1e-18 < v < 1e18 for size, v in values.items())
    assert ("so nothing is drawn" in said) is not drawable
    assert ("Size 0 B does not fit" in said) is (0 in values)


def test_who_asks_for_json_and_a_page_gets_both(tree, tmp_path, capsys):
    page = tmp_path / "page.html"
    report_tree(tree, page, True)
    assert json.loads(capsys.readouterr().out)["tree"]
    assert page.read_text().startswith("<!doctype html>")
    with pytest.raises(InvalidInput, match="cannot be written"):
        report_tree(tree, tmp_path, True)
    assert capsys.readouterr().out == ""


def test_a_tree_that_one_may_only_read_has_its_table(tree, monkeypatch, capsys):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("mvstack.report.page.write_atomically", refuse)
    with pytest.raises(InvalidInput, match="cannot be written") as caught:
        report_tree(tree, None, as_json=False)
    assert "--html FILE" in caught.value.problems[0].todo
    assert "built with EasyBuild" in capsys.readouterr().out.replace("\n", " ")


def test_tuned_stands_beside_plain(tree):
    plan = json.loads((tree / "records" / "plan.json").read_text())
    why = "1.64 times as fast, measured here on 2026-11-26; two copies <beat> the kernel's"
    mpi = plan["mpi"][0]
    mpi["tuning"] = {"UCX_TLS": {"value": "posix,self", "why": why, "source": "mvstack tune"}}
    (tree / "records" / "plan.json").write_text(json.dumps(plan))
    without = Page(render(gather(tree))).said()
    assert f"UCX_TLS=posix,self {why} mvstack tune" in without
    assert "The check Tuned has not compared it with the plain build yet." in without
    results = tree / "records" / "results" / "2026-11-22T110000Z.json"
    run = json.loads(results.read_text())
    rows = [("tuned_latency", None, 1.6, "times as fast")]
    rows += [("plain_latency", 8, 0.4, "us"), ("plain_latency", 65536, 6.8, "us")]
    rows += [("tuned_latency", 8, 0.2, "us"), ("tuned_latency", 65536, 2.5, "us")]
    figures = [dict(zip(("name", "size", "value", "unit"), row, strict=True)) for row in rows]
    case = {"check": "Tuned latency", "mpi": mpi["module"], "ranks": 2, "result": "pass"}
    run["cases"].append({**case, "figures": figures})
    results.write_text(json.dumps(run))
    data = gather(tree)
    said = Page(render(data)).said()
    assert "2 ranks plain tuned latency passed 1.60 times as fast" in said
    assert "8 B 0.400 µs 0.200 µs 64 KiB 6.80 µs 2.50 µs" in said
    assert "export MVAPICH_STACK_UNTUNED=1 before the module is loaded" in said
    assert "or after that unset UCX_TLS" in said
    assert all("Tuned" not in plot.check for plot in data.plots)
    assert "tuned_latency 1.60 times as fast" in said  # beside the check, too
    console = Console(file=io.StringIO(), width=80)
    print_report(data, console)
    told = " ".join(console.file.getvalue().split())
    assert "tuned: UCX_TLS=posix,self: 1.64 times as fast" in told
    assert "latency of 64 KiB: plain 6.80 µs, tuned 2.50 µs" in told
    assert "after that unset UCX_TLS" in told
