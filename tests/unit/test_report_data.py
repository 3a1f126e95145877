"""From records to the report's data: what counts, what is history, what is damaged."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mvstack.report.page import track
from mvstack.report.series import higher_is_better, kind_of
from mvstack.report.summary import as_json, gather, grouped_steps

SAMPLES = Path(__file__).parents[1] / "data" / "report"
PLANNED = "mpich/4.0.2-ofi"


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(SAMPLES / "local-fallback", tmp_path / "tree")
    return tmp_path / "tree"


def put(tree, name, value):
    path = tree / "records" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def run_at(started, *cases, **more):
    return {"started": started, "seconds": 1, "cases": list(cases), **more}


def case(check="WorldSize 2", result="pass", mpi=PLANNED, **more):
    return {"check": check, "mpi": mpi, "ranks": 2, "result": result, "seconds": 1, **more}


def curve(values, name="latency", unit="us", **more):
    figures = [{"name": name, "size": size, "value": v, "unit": unit} for size, v in values.items()]
    return case("Benchmark latency", figures=figures, **more)


def test_the_sample_has_nothing_to_complain_of(tree):
    data = gather(tree)
    assert data.notices == ()
    assert data.good
    assert data.verdict == "all 10 checks passed"
    assert data.mpi[0].state == "run"
    assert data.module_load == "module load mvapich-stack/2026.11 hpcc/1.5.0"
    assert data.setup == f"module use {tree}/modules/Core"


def test_a_tree_is_opened_by_its_own_line_where_there_is_one(tree):
    (tree / "init").mkdir()
    (tree / "init" / "bash").write_text("")
    assert gather(tree).setup == f"source {tree}/init/bash"


def test_a_smoke_run_does_not_hide_the_full_run_before_it(tree):
    data = gather(tree)
    assert data.latest.tags == ("smoke",)
    assert {plot.title for plot in data.plots} == {"Latency", "Bandwidth", "Allreduce"}
    hpcc = next(case for case in data.cases if case.check == "Hpcc")
    assert hpcc.run == "2026-11-21T08:55:40+00:00"
    assert next(case for case in data.cases if case.check == "HelloC").run == ""


def test_results_older_than_the_build_of_their_mpi_do_not_count(tree):
    with (tree / "records" / "builds.jsonl").open("a") as stream:
        row = {"package": "MPICH", "version": "4.0.2", "module": PLANNED, "result": "built"}
        row["easyconfig"] = "MPICH-4.0.2-GCC-12.2.0-ofi.eb"
        stream.write(json.dumps({**row, "started": "2026-11-21T08:59:00Z"}) + "\n")
    data = gather(tree)
    assert {case.check for case in data.cases} == {
        "WorldSize 2", "Believe", "HelloC", "HelloFortran",
    }  # fmt: skip
    assert data.plots == ()


def test_results_of_an_mpi_that_is_not_planned_do_not_count(tree):
    put(tree, "results/z.json", run_at("2026-12-01T00:00:00Z", case("Other", mpi="mpich/3.0-ofi")))
    assert "Other" not in {case.check for case in gather(tree).cases}


def test_a_missing_case_takes_the_place_of_an_older_pass(tree):
    put(tree, "results/z.json", run_at("2026-12-01T00:00:00Z", case("Hpcc", "missing", ranks=None)))
    data = gather(tree)
    assert [c.result for c in data.cases if c.check == "Hpcc"] == ["missing"]
    assert not data.good
    assert data.verdict == "1 missing, 9 passed"


@pytest.mark.parametrize("said", ["passed", "", None, 1, "PASS", ["pass"]])
def test_an_unknown_result_is_never_a_success(tree, said):
    put(tree, "results/z.json", run_at("2026-12-01T00:00:00Z", case("Odd", said)))
    odd = next(c for c in gather(tree).cases if c.check == "Odd")
    assert odd.result == "missing"
    assert "no result" in odd.why


def test_the_band_is_the_range_of_the_other_runs(tree):
    shutil.rmtree(tree / "records" / "results")
    for day, value in enumerate((3.0, 1.0, 2.0), start=1):
        put(tree, f"results/{day}.json", run_at(f"2026-12-0{day}", curve({8: value, 16: 9.0})))
    (plot,) = gather(tree).plots
    (line,) = plot.lines
    point = line.points[0]
    assert (point.value, point.low, point.high, line.earlier) == (2.0, 1.0, 3.0, 2)


def test_another_benchmark_is_no_part_of_the_band(tree):
    shutil.rmtree(tree / "records" / "results")
    put(tree, "results/1.json", run_at("2026-12-01", curve({8: 1, 16: 9}, benchmark="IMB")))
    put(tree, "results/2.json", run_at("2026-12-02", curve({8: 2, 16: 9}, benchmark="OSU")))
    (line,) = gather(tree).plots[0].lines
    assert (line.benchmark, line.earlier, line.points[0].low) == ("OSU", 0, None)


def test_runs_are_ordered_by_time_across_zones_not_by_file_name(tree):
    put(tree, "results/a.json", run_at("2026-12-01T01:00:00+02:00", case("A")))
    put(tree, "results/b.json", run_at("2026-11-30T23:30:00Z", case("B")))
    assert gather(tree).latest.file == "b.json"


def test_a_failed_build_is_told_first_with_its_log():
    data = gather(SAMPLES / "mvapich-two-devices")
    first = data.notices[0]
    assert (first.kind, first.where) == ("build", "OSU-Micro-Benchmarks 7.5")
    assert "logs/OSU-Micro-Benchmarks-7.5.log" in first.todo
    assert not data.good
    assert "1 package not built" in data.verdict


def test_bytes_that_are_not_upstreams_are_told_once_for_each_source():
    notices = [n for n in gather(SAMPLES / "mvapich-two-devices").notices if n.kind == "bytes"]
    assert [(n.where, n.message) for n in notices] == [
        ("MVAPICH 4.0, mvapich-4.0.tar.gz", "not upstream's bytes")
    ]


def test_the_plans_word_on_its_bytes_is_told_when_no_source_is_recorded(tree):
    plan = json.loads((tree / "records" / "plan.json").read_text())
    plan["mpi"][0]["not_upstream"] = "a patched tree"
    put(tree, "plan.json", plan)
    (notice,) = [n for n in gather(tree).notices if n.kind == "bytes"]
    assert (notice.where, notice.todo) == ("MPICH 4.0.2 (mpich/4.0.2-ofi)", "a patched tree")


def test_a_source_that_does_not_say_whose_it_is_is_not_upstreams(tree):
    put(tree, "sources.jsonl", json.dumps({"file": "x.tar", "sha256": "ab"}) + "\n")
    data = gather(tree)
    assert data.other_sources[0].upstream is False
    assert any(n.kind == "bytes" and n.where == "x.tar" for n in data.notices)


def test_one_package_over_two_mpi_builds_is_two_builds(tree):
    plan = json.loads((tree / "records" / "plan.json").read_text())
    for mpi in ("a/1-ofi", "a/1-ucx"):
        row = {"name": "HPCC", "version": "1.5.0", "module": "hpcc/1.5.0", "mpi": mpi}
        plan["packages"].append({**row, "easyconfig": f"HPCC-{mpi[-3:]}.eb"})
    put(tree, "plan.json", plan)
    built = [b for b in gather(tree).builds if b.name == "HPCC"]
    assert [(b.mpi, b.state) for b in built] == [
        (PLANNED, "run"), ("a/1-ofi", "rendered"), ("a/1-ucx", "rendered"),
    ]  # fmt: skip


def test_what_the_builder_needed_besides_is_not_planned(tree):
    assert [b.name for b in gather(tree).builds if not b.planned] == ["GCC"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("plan.json", None, "is not there"),
        ("plan.json", '{"system": "lo', "is damaged"),
        ("plan.json", "[1, 2]", "is damaged"),
        ("plan.json", "[" * 100_000, "nested too deeply"),
        ("builds.jsonl", None, "is not there"),
        ("sources.jsonl", None, "is not there"),
        ("results/2026-11-21T090003Z.json", "", "is damaged"),
        ("results/2026-11-21T090003Z.json", "\x00\xff", "is damaged"),
        ("results/2026-11-21T090003Z.json", "null", "is damaged"),
    ],
)
def test_a_missing_or_damaged_record_is_a_notice_with_what_to_do(tree, name, content, said):
    path = tree / "records" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    (notice,) = [n for n in gather(tree).notices if n.kind == "record"]
    assert notice.where == name
    assert said in notice.message
    assert notice.todo


def test_a_record_that_is_a_folder_is_a_notice(tree):
    (tree / "records" / "plan.json").unlink()
    (tree / "records" / "plan.json").mkdir()
    (notice,) = [n for n in gather(tree).notices if n.kind == "record"]
    assert "cannot be read" in notice.message


def test_a_line_cut_by_a_power_failure_costs_that_line_only(tree):
    path = tree / "records" / "builds.jsonl"
    lines = path.read_text().count("\n")
    path.write_text(path.read_text() + '{"package": "MPICH", "vers')
    data = gather(tree)
    (notice,) = [n for n in data.notices if n.kind == "record"]
    assert notice.where == f"builds.jsonl:{lines + 1}"
    assert data.mpi[0].state == "run"


def test_an_empty_tree_says_what_to_run(tmp_path):
    data = gather(tmp_path / "none")
    assert {n.where for n in data.notices} == {
        "plan.json", "builds.jsonl", "sources.jsonl", "results/",
    }  # fmt: skip
    assert not data.good
    assert not data.loadable
    assert data.verdict == "no check has run"


def test_headline_of_a_plan_that_is_not_built(tree):
    (tree / "records" / "builds.jsonl").write_text("")
    shutil.rmtree(tree / "records" / "results")
    data = gather(tree)
    assert data.mpi[0].state == "rendered"
    assert "not built yet" in data.headline
    assert not data.loadable


def test_json_is_plain_data(tree):
    found = json.loads(json.dumps(as_json(gather(tree))))
    assert found["good"] is True
    assert found["counts"] == {"pass": 10, "fail": 0, "missing": 0, "skip": 0}
    assert found["mpi"][0]["state"] == "run"


def test_steps_are_grouped_and_none_is_lost(tree):
    build = gather(tree).builds[0]
    groups = grouped_steps(build)
    assert sum(s for _, s in groups) == pytest.approx(sum(build.steps.values()))
    assert dict(groups)["build"] == 912.5
    odd = build.model_copy(update={"steps": {"sanitycheck": 1.0, "unheard of": 2.0}})
    assert dict(grouped_steps(odd)) == {"sanity check": 1.0, "other": 2.0}


def test_steps_are_known_by_what_easybuild_prints(tree):
    """EasyBuild prints "building", "sanity checking": its own names are only inside it."""
    said = {
        "starting": "prepare", "resolving dependencies ": "prepare", "unpacking": "prepare",
        "fetching files and verifying checksums": "prepare", "patching": "prepare",
        "creating build dir, resetting environment": "prepare", "preparing": "prepare",
        "configuring": "configure", "building": "build", "testing": "test",
        "installing": "install", "taking care of extensions": "install",
        "postprocessing": "install", "sanity checking": "sanity check",
        "cleaning up": "other", "creating module": "other", "permissions": "other",
    }  # fmt: skip
    build = gather(tree).builds[0]
    for step, group in said.items():
        one = build.model_copy(update={"steps": {step: 1.0}})
        assert grouped_steps(one) == [(group, 1.0)], step


def test_the_note_of_other_bytes_does_not_say_so_twice(tree):
    row = {"file": "x.tar", "sha256": "ab", "upstream": False}
    put(tree, "sources.jsonl", json.dumps({**row, "note": "not upstream's bytes: patched"}) + "\n")
    (notice,) = [one for one in gather(tree).notices if one.kind == "bytes"]
    assert notice.todo == "patched"


def test_concretized_is_a_state_of_spack_alone():
    assert [word for word, _ in track("run", "easybuild")] == ["rendered", "built", "run"]
    assert [word for word, _ in track("run", "spack")] == [
        "rendered",
        "concretized",
        "built",
        "run",
    ]


@pytest.mark.parametrize(
    ("check", "name", "unit", "kind", "higher"),
    [
        ("Benchmark latency", "latency", "us", "latency", False),
        ("Benchmark bandwidth", "bandwidth", "MB/s", "bandwidth", True),
        ("Benchmark allreduce", "allreduce", "us", "allreduce", False),
        ("osu_bw", "osu_bw", "MB/s", "bandwidth", True),
        ("PingPong", "t", "usec", "latency", False),
        ("HPL", "rate", "GFLOP/s", "rate", True),
        ("steps", "time", "s/step", "time", False),
    ],
)
def test_what_a_figure_is_and_which_way_is_good(check, name, unit, kind, higher):
    assert kind_of(check, name, unit) == kind
    assert higher_is_better(unit) is higher


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


def _broken(value, draw):
    """``value`` with one place in it replaced by anything at all."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _broken(value[key], draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], _broken(value[index], draw), *value[index + 1 :]]
    return draw(JSON)


@settings(suppress_health_check=list(HealthCheck))
@given(draw=st.data(), name=st.sampled_from(["plan.json", "result", "builds", "sources"]))
def test_no_content_of_a_record_raises(tmp_path, draw, name):
    tree = tmp_path / "tree"
    if not tree.exists():
        shutil.copytree(SAMPLES / "mvapich-two-devices", tree)
    result = "results/2026-11-22T110000Z.json"
    file = {"result": result, "builds": "builds.jsonl", "sources": "sources.jsonl"}.get(name, name)
    whole = (SAMPLES / "mvapich-two-devices" / "records" / file).read_text()
    if file.endswith("l"):
        lines = [_broken(json.loads(line), draw.draw) for line in whole.splitlines()]
        text = "\n".join(map(json.dumps, lines))
    else:
        text = json.dumps(_broken(json.loads(whole), draw.draw))
    put(tree, file, text)
    data = gather(tree)
    assert data.headline
    assert data.verdict
    json.dumps(as_json(data), allow_nan=False)
    put(tree, file, whole)


@pytest.mark.parametrize(("content", "counts"), [("abc", True), ("def", False)])
def test_a_run_elsewhere_counts_for_the_content_that_it_says_it_had(tree, content, counts):
    shutil.rmtree(tree / "records" / "results")
    put(tree, "nodes.json", {"MPICH-4.0.2-GCC-12.2.0-ofi.eb": "abc"})
    before_the_build = "2026-11-01T00:00:00Z"
    put(tree, "results/1.json", run_at(before_the_build, case(), contents={PLANNED: content}))
    assert bool(gather(tree).cases) is counts


def test_a_field_of_the_wrong_kind_costs_its_record_and_is_named(tree):
    put(tree, "sources.jsonl", json.dumps({"file": "x.tar", "upstream": "yes"}) + "\n")
    (notice,) = gather(tree).notices
    assert (notice.where, "upstream: " in notice.message) == ("sources.jsonl:1", True)


def test_checks_that_are_skipped_for_one_reason_are_told_with_it_once(tree):
    cases = [case(f"OsuBenchmarks {one}", "skip", why="no OSU") for one in ("startup", "one-sided")]
    put(tree, "results/2026-11-30T100000Z.json", run_at("2026-11-30T10:00:00Z", *cases))
    told = [(one.what, one.why) for one in gather(tree).skipped if one.why == "no OSU"]
    both = f"OsuBenchmarks startup with {PLANNED}, OsuBenchmarks one-sided with {PLANNED}"
    assert told == [(both, "no OSU")]
