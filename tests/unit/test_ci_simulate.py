"""Simulated pipelines: bounds that hold for any list schedule, and small ones counted by hand."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mvstack.ci.jobs import Job
from mvstack.ci.simulate import Simulated, simulate

START = 60.0


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, list[Job]]:
    """Some pipelines of some jobs, written in any order."""
    made = {}
    for name in draw(st.lists(st.sampled_from(["a/cpu", "b/cpu", "b/gpu"]), unique=True)):
        names = [f"build:{number}" for number in range(draw(st.integers(0, 12)))]
        jobs = [
            Job(
                job,
                [job],
                draw(st.lists(st.sampled_from(names[:number]), max_size=4, unique=True))
                if number
                else [],
                draw(st.floats(0, 5000)),
            )
            for number, job in enumerate(names)
        ]
        made[name] = draw(st.permutations(jobs))
    return made


def total(made: dict[str, list[Job]], start: float = START) -> float:
    return sum(job.seconds + start for jobs in made.values() for job in jobs)


@given(pipelines(), st.integers(1, 6))
@settings(max_examples=300, deadline=None)
def test_no_run_is_shorter_than_its_bounds_nor_longer_than_grahams(made, runners):
    found = simulate(made, runners, START)
    work = total(made)
    assert found.makespan >= found.critical_seconds - 1e-6
    assert found.makespan >= work / runners - 1e-6
    # Graham: work/m + (1 - 1/m) critical <= (2 - 1/m) best
    bound = work / runners + (1 - 1 / runners) * found.critical_seconds
    assert found.makespan <= bound + 1e-6
    assert found.jobs == sum(map(len, made.values()))
    assert found.core_hours == pytest.approx(work / 3600)
    if found.makespan:
        assert found.busy == pytest.approx(work / (runners * found.makespan))
        assert found.busy <= 1 + 1e-9


@given(pipelines())
@settings(max_examples=100, deadline=None)
def test_one_runner_takes_the_sum_and_very_many_the_longest_chain(made):
    assert simulate(made, 1, START).makespan == pytest.approx(total(made))
    many = simulate(made, 1000, START)
    assert many.makespan == pytest.approx(many.critical_seconds)


@given(pipelines(), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_every_job_runs_once_after_what_it_needs_on_a_free_runner(made, runners):
    found = simulate(made, runners, START)
    ran = {(slot.pipeline, slot.job): slot for slot in found.slots}
    assert len(ran) == len(found.slots)
    assert set(ran) == {(name, job.name) for name, jobs in made.items() for job in jobs}
    for name, jobs in made.items():
        for job in jobs:
            slot = ran[name, job.name]
            assert slot.end - slot.begin == pytest.approx(job.seconds + START)
            assert all(ran[name, need].end <= slot.begin for need in job.needs)
    for slot in found.slots:
        at_once = [one for one in found.slots if one.begin <= slot.begin < one.end]
        assert len(at_once) <= runners


@given(pipelines(), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_the_critical_path_is_a_chain_of_needs_that_takes_what_is_said(made, runners):
    found = simulate(made, runners, START)
    jobs = {f"{name}: {job.name}": job for name, listed in made.items() for job in listed}
    path = [jobs[one] for one in found.critical_path]
    assert sum(job.seconds + START for job in path) == pytest.approx(found.critical_seconds)
    for before, after in itertools.pairwise(path):
        assert before.name in after.needs
    assert not path or not path[0].needs


def test_counted_by_hand():
    made = {
        "a/cpu": [
            Job("build:mpi", ["mpi"], [], 600.0),
            Job("build:app", ["app"], ["build:mpi"], 1000.0),
            Job("build:small", ["small"], [], 100.0),
            Job("relay:1", [], ["build:mpi", "build:small"], 0.0, relay=True),
        ]
    }
    found = simulate(made, 2, 60.0, cores=16)
    assert found.makespan == found.critical_seconds == 660 + 1060
    assert found.critical_path == ("a/cpu: build:mpi", "a/cpu: build:app")
    assert found.core_hours == pytest.approx((660 + 1060 + 160 + 60) * 16 / 3600)
    assert [slot.job for slot in found.slots] == [
        "build:mpi",
        "build:small",
        "build:app",
        "relay:1",
    ]


def test_the_longest_way_goes_first():
    made = {"a": [Job("short", ["s"], [], 10.0), Job("long", ["l"], [], 500.0)]}
    assert [slot.job for slot in simulate(made, 1, 0.0).slots] == ["long", "short"]


def test_runners_of_one_class_take_no_others_jobs():
    made = {
        "a/cpu": [Job("one", ["1"], [], 100.0), Job("two", ["2"], [], 100.0)],
        "b/arm": [Job("three", ["3"], [], 50.0)],
    }
    found = simulate(made, {"x86": 1, "arm": 1}, 0.0, classes={"a/cpu": "x86", "b/arm": "arm"})
    assert found.makespan == 200
    assert found.busy == pytest.approx(250 / 400)
    with pytest.raises(ValueError, match="b/arm"):
        simulate(made, {"x86": 3}, 0.0, classes={"a/cpu": "x86", "b/arm": "arm"})


def test_nothing_takes_no_time():
    assert simulate({}, 3, START) == Simulated(0.0, (), 0.0, 0.0, 0, 0.0, ())


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ([Job("one", ["1"], ["none"])], "no job"),
        ([Job("one", ["1"], ["two"]), Job("two", ["2"], ["one"])], "waits for itself"),
    ],
)
def test_jobs_that_can_never_begin_are_refused(jobs, message):
    with pytest.raises(ValueError, match=message):
        simulate({"a": jobs}, 1, START)


def test_no_runner_is_refused():
    with pytest.raises(ValueError, match="no runner"):
        simulate({"a": [Job("one", ["1"])]}, 0, START)
