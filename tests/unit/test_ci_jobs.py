"""Jobs of any graph: each node in one job, in a working order, within limits, and no later."""

import itertools

import pytest
from ci_world import partition
from hypothesis import given, settings
from hypothesis import strategies as st

from mvstack.ci.graph import Graph, Node
from mvstack.ci.jobs import Job, make_jobs
from mvstack.ci.simulate import simulate

START = 60.0


def graph_of(needs: dict[str, list[str]], by: str = "lock file") -> Graph:
    """A graph of these keys, in build order, and nothing else."""
    nodes = {
        key: Node(key, "package", key.partition(".")[0], "1.0", key, tuple(below))
        for key, below in needs.items()
    }
    return Graph("a/b", "spack", by, "debian12", "zen3", "none", "/apps", "", nodes, {})


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Graph, tuple[str, ...], dict[str, float]]:
    """A graph, what of it is built, and what that takes."""
    count = draw(st.integers(0, 24))
    keys = [f"p{number:02}" for number in range(count)]
    needs = {
        key: draw(st.lists(st.sampled_from(keys[:number]), max_size=5, unique=True))
        if number
        else []
        for number, key in enumerate(keys)
    }
    build = tuple(key for key in keys if draw(st.integers(0, 9)))
    seconds = {key: draw(st.floats(0, 2000)) for key in keys}
    return graph_of(needs), build, seconds


def alone(graph: Graph, build: tuple[str, ...], seconds: dict[str, float]) -> list[Job]:
    """Every node a job of its own."""
    return [
        Job(key, [key], sorted((graph.closure([key]) - {key}) & set(build)), seconds[key])
        for key in build
    ]


def sources(jobs: list[Job]) -> dict[str, set[str]]:
    """The jobs whose packages each job may take: those it needs, and all that relays hand on."""
    found: dict[str, set[str]] = {}
    relays = {job.name for job in jobs if job.relay}
    for job in jobs:
        found[job.name] = {name for name in job.needs if name not in relays}.union(
            *(found[name] for name in job.needs if name in relays)
        )
    return found


@given(worlds(), st.floats(0, 1000), st.integers(1, 30), st.integers(2, 6))
@settings(max_examples=300, deadline=None)
def test_each_node_has_one_job_that_gets_what_it_stands_on(world, worth, max_jobs, max_needs):
    graph, build, seconds = world
    jobs = make_jobs(
        graph,
        build,
        lambda node: seconds[node.key],
        worth=worth,
        max_jobs=max_jobs,
        max_needs=max_needs,
        start=START,
    )
    assert sorted(itertools.chain.from_iterable(job.keys for job in jobs)) == sorted(build)
    assert all(job.keys for job in jobs if not job.relay)
    assert len({job.slug for job in jobs}) == len(jobs)  # each hands on in a folder of its own
    assert len({job.name.lower() for job in jobs}) == len(jobs)
    assert all(len(job.needs) <= max_needs for job in jobs)
    assert len(jobs) <= max(max_jobs, 1)
    names = [job.name for job in jobs]
    for position, job in enumerate(jobs):
        assert set(job.needs) <= set(names[:position])  # so nothing waits for itself
    of = {key: job.name for job in jobs for key in job.keys}
    given_to = sources(jobs)
    place = {key: number for number, key in enumerate(build)}
    for job in jobs:
        assert [place[key] for key in job.keys] == sorted(place[key] for key in job.keys)
        below = graph.closure(job.keys) & set(build)
        assert {of[key] for key in below} <= given_to[job.name] | {job.name}
        assert job.seconds == pytest.approx(sum(seconds[key] for key in job.keys), abs=0.1)


@given(worlds(), st.floats(0, 1000))
@settings(max_examples=200, deadline=None)
def test_putting_together_makes_nothing_later(world, worth):
    graph, build, seconds = world
    jobs = make_jobs(
        graph,
        build,
        lambda node: seconds[node.key],
        worth=worth,
        max_jobs=1000,
        max_needs=1000,
        start=START,
    )
    now = simulate({"p": jobs}, 1000, START).makespan
    before = simulate({"p": alone(graph, build, seconds)}, 1000, START).makespan
    assert now <= before + 0.1 * len(build)  # a job's seconds are rounded to tenths
    assert len(jobs) <= len(build)


@given(worlds(), st.floats(1, 1000))
@settings(max_examples=200, deadline=None)
def test_what_is_put_beside_a_long_build_takes_less_than_a_start(world, worth):
    graph, build, seconds = world
    jobs = make_jobs(
        graph,
        build,
        lambda node: seconds[node.key],
        worth=worth,
        max_jobs=1000,
        max_needs=1000,
        start=START,
    )
    for job in jobs:
        took = sorted(seconds[key] for key in job.keys)
        assert sum(took) <= worth + 1e-6 or sum(took[:-1]) <= START + 1e-6


def test_two_builds_of_the_mpi_do_not_wait_for_each_other():
    needs = {
        "GCCcore.eb": [],
        "GCC.eb": ["GCCcore.eb"],
        "MPI-ofi.eb": ["GCCcore.eb", "GCC.eb"],
        "tool-ofi.eb": ["GCCcore.eb", "GCC.eb", "MPI-ofi.eb"],
        "App-ofi.eb": ["GCCcore.eb", "GCC.eb", "MPI-ofi.eb", "tool-ofi.eb"],
        "MPI-ucx.eb": ["GCCcore.eb", "GCC.eb"],
        "tool-ucx.eb": ["GCCcore.eb", "GCC.eb", "MPI-ucx.eb"],
        "App-ucx.eb": ["GCCcore.eb", "GCC.eb", "MPI-ucx.eb", "tool-ucx.eb"],
    }
    seconds = {"MPI-ofi": 700.0, "MPI-ucx": 700.0, "App-ofi": 17.0, "App-ucx": 17.0}
    jobs = make_jobs(
        graph_of(needs, "easyconfigs"),
        tuple(needs),
        lambda node: seconds.get(node.name, 1.0),
        worth=300,
        max_jobs=100,
        max_needs=50,
    )
    assert [job.keys for job in jobs] == [
        ["GCCcore.eb", "GCC.eb"],
        ["MPI-ofi.eb", "tool-ofi.eb", "App-ofi.eb"],
        ["MPI-ucx.eb", "tool-ucx.eb", "App-ucx.eb"],
    ]
    assert [len(job.needs) for job in jobs] == [0, 1, 1]


def test_small_packages_over_a_quick_mpi_are_one_job_with_it():
    needs = {"GCCcore.eb": [], "GCC.eb": ["GCCcore.eb"], "MPI.eb": ["GCCcore.eb", "GCC.eb"]}
    needs |= {"App.eb": list(needs), "Tool.eb": list(needs)}
    seconds = {"MPI": 200.0, "App": 7.0, "Tool": 4.0}
    jobs = make_jobs(
        graph_of(needs, "easyconfigs"),
        tuple(needs),
        lambda node: seconds.get(node.name, 1.0),
        worth=300,
        max_jobs=100,
        max_needs=50,
    )
    assert [len(job.keys) for job in jobs] == [5]


def test_a_long_build_does_not_fail_with_what_comes_after_it():
    needs = {"GCC.eb": [], "MPI.eb": ["GCC.eb"], "tool.eb": ["GCC.eb", "MPI.eb"]}
    seconds = {"GCC": 2400.0, "MPI": 260.0}
    jobs = make_jobs(
        graph_of(needs, "easyconfigs"),
        tuple(needs),
        lambda node: seconds.get(node.name, 1.0),
        worth=300,
        max_jobs=100,
        max_needs=50,
    )
    assert [job.keys for job in jobs] == [["GCC.eb"], ["MPI.eb", "tool.eb"]]


def test_what_is_needed_by_way_of_a_cached_package_is_waited_for():
    needs = {"zlib": [], "hdf5": ["zlib"], "app": ["hdf5"]}
    jobs = make_jobs(
        graph_of(needs),
        ("zlib", "app"),  # hdf5 is in a cache; to install it takes zlib
        lambda node: 1000.0,
        worth=300,
        max_jobs=100,
        max_needs=50,
    )
    assert [job.keys for job in jobs] == [["zlib"], ["app"]]
    assert jobs[1].needs == [jobs[0].name]


def test_names_that_make_one_folder_are_kept_apart():
    needs = {"a.x": [], "a.y": [], "a+.z": []}
    jobs = make_jobs(
        graph_of(needs, "easyconfigs"),
        tuple(needs),
        lambda node: 1000.0,
        worth=300,
        max_jobs=100,
        max_needs=50,
    )
    assert len({job.slug for job in jobs}) == 3


def test_more_needs_than_allowed_come_by_relays():
    needs: dict[str, list[str]] = {f"p{number:02}": [] for number in range(20)}
    needs["top"] = list(needs)
    jobs = make_jobs(
        graph_of(needs),
        tuple(needs),
        lambda node: 1000.0,
        worth=300,
        max_jobs=100,
        max_needs=5,
    )
    assert max(len(job.needs) for job in jobs) == 5
    assert sources(jobs)[jobs[-1].name] == {job.name for job in jobs[:-1] if not job.relay}


def test_fewer_jobs_than_the_limit_whatever_it_delays():
    graph = partition(0, 200)
    for most in (1, 7, 40):
        jobs = make_jobs(
            graph, tuple(graph.nodes), lambda node: 500.0, worth=300, max_jobs=most, max_needs=50
        )
        assert len(jobs) <= most


def test_one_need_a_job_cannot_be_kept():
    with pytest.raises(ValueError, match="relay"):
        make_jobs(graph_of({}), (), lambda node: 1.0, worth=300, max_jobs=9, max_needs=1)
