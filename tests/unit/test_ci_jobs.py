"""Jobs of any graph: each node in one job, in an order that works, within the limit."""

from __future__ import annotations

import itertools

from ci_world import partition
from hypothesis import given
from hypothesis import strategies as st

from mvstack.ci.graph import Graph
from mvstack.ci.jobs import make_jobs
from mvstack.plan.graph import Node


def graph_of(needs: dict[str, list[str]], by: str = "lock file") -> Graph:
    """A graph of these keys, in build order, and nothing else."""
    nodes = {
        key: Node(key, "package", key.partition(".")[0], "1.0", key, tuple(below))
        for key, below in needs.items()
    }
    return Graph(
        *("a/b", "spack", by, nodes),
        os="debian12",
        target="zen3",
        gpu="none",
        aspects={},
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Graph, tuple[str, ...]]:
    """A graph, and what of it is built."""
    count = draw(st.integers(0, 24))
    keys = [f"p{number:02}" for number in range(count)]
    needs = {
        key: draw(st.lists(st.sampled_from(keys[:number]), max_size=5, unique=True))
        if number
        else []
        for number, key in enumerate(keys)
    }
    return graph_of(needs), tuple(key for key in keys if draw(st.integers(0, 9)))


@given(worlds(), st.integers(1, 30))
def test_each_node_has_one_job_that_gets_what_it_stands_on(
    world: tuple[Graph, tuple[str, ...]], most: int
) -> None:
    graph, build = world
    jobs = make_jobs(graph, build, most)
    assert sorted(itertools.chain.from_iterable(job.keys for job in jobs)) == sorted(build)
    assert all(job.keys for job in jobs)
    assert len(jobs) <= most
    assert len({job.slug for job in jobs}) == len(jobs)  # each hands on in a folder of its own
    assert len({job.name.lower() for job in jobs}) == len(jobs)
    of = {key: job.name for job in jobs for key in job.keys}
    built: set[str] = set()
    before: list[str] = []
    for job in jobs:
        assert set(job.needs) <= set(before)  # so nothing waits for itself
        for key in job.keys:
            below = (graph.closure([key]) & set(build)) - {key}
            assert below <= built
            assert {of[one] for one in below} <= {*job.needs, job.name}
            built.add(key)
        before.append(job.name)
    if len(build) <= most:
        assert len(jobs) == len(build)


def test_what_is_needed_by_way_of_a_cached_package_is_waited_for() -> None:
    graph = graph_of({"zlib": [], "hdf5": ["zlib"], "app": ["hdf5"]})
    jobs = make_jobs(graph, ("zlib", "app"), 50)  # hdf5 is in a cache; to install it takes zlib
    assert [job.keys for job in jobs] == [["zlib"], ["app"]]
    assert jobs[1].needs == [jobs[0].name]


def test_names_that_make_one_folder_are_kept_apart() -> None:
    graph = graph_of({"a.x": [], "a.y": [], "a+.z": []}, "easyconfigs")
    assert len({job.slug for job in make_jobs(graph, tuple(graph.nodes), 50)}) == 3


def test_too_many_packages_share_jobs_with_others_of_their_level() -> None:
    needs: dict[str, list[str]] = {f"p{number}": [] for number in range(6)}
    needs |= {f"q{number}": ["p0"] for number in range(3)}
    jobs = make_jobs(graph_of(needs), tuple(needs), 5)
    assert [job.keys for job in jobs] == [["p0", "p1"], ["p2", "p3"], ["p4", "p5"], ["q0", "q1"], ["q2"]]  # fmt: skip  # noqa: E501
    assert jobs[-1].needs == [jobs[0].name]


def test_a_large_partition_keeps_the_limit() -> None:
    graph = partition(0, 200)
    for most in (1, 7, 49):
        jobs = make_jobs(graph, tuple(graph.nodes), most)
        assert len(jobs) <= most
        assert sum(len(job.keys) for job in jobs) == 200
