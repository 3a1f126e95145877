"""What pipelines cost for 50 systems of 200 packages: to make them, in GitLab's limits, and to run.

The systems are made up (tests/unit/ci_world.py): in shape like Spack's lock files, with build times
of environments/policy/build-times.yaml. Making is measured; running is simulated: builds alone (no
staging, checks or queues), every job with a start of its own, ccache not counted. Beside what the
jobs take stands what one job for every package would.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import time
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TOP = Path(__file__).resolve().parents[1]
sys.path += [str(TOP / "tests" / "unit"), str(TOP / "benchmarks")]

from ci_world import names, world  # noqa: E402
from measure import machine  # noqa: E402

from mvstack.ci.changes import Todo, todo  # noqa: E402
from mvstack.ci.estimate import seconds  # noqa: E402
from mvstack.ci.graph import Graph, Node  # noqa: E402
from mvstack.ci.jobs import START, Job, make_jobs  # noqa: E402
from mvstack.ci.pipeline import Context, Pipelines, Target, pipelines  # noqa: E402
from mvstack.ci.simulate import simulate  # noqa: E402
from mvstack.model.ci import Settings, Site  # noqa: E402
from mvstack.model.ci_policy import CiPolicy, ci_policy  # noqa: E402

RUNNERS = (1, 10, 100)
Graphs = dict[str, Graph]


@dataclass(frozen=True)
class Making:
    """What it took to make the pipelines of one change, in seconds, and what they are.

    ``jobs_s`` is the part of ``pipelines_s`` that writes no YAML. ``relays`` are among the jobs.
    """

    change: str
    builds: int
    jobs: int
    relays: int
    most_jobs: int
    most_needs: int
    files: int
    largest_bytes: int
    all_bytes: int
    zipped_bytes: int
    todo_s: float
    jobs_s: float
    pipelines_s: float


@dataclass(frozen=True)
class Running:
    """Hours that one change takes on so many runners; ``alone``: with a job for every package."""

    change: str
    runners: int
    hours: float
    hours_alone: float
    critical_hours: float
    critical_path: int
    core_hours: float
    busy: float


def changes(systems: int, packages: int) -> dict[str, tuple[Graphs, Graphs]]:
    """By name, the partitions of before and of after."""
    before = world(systems, packages)
    mpis = [(number, name) for number in range(systems) for name in names(number, packages)["mpi"]]
    tops = [(number, names(number, packages)["tops"][-1]) for number in range(systems)]
    return {
        "everything": ({}, before),
        "the MPI, on all systems": (before, world(systems, packages, mpis)),
        "one leaf package, on all systems": (before, world(systems, packages, tops)),
        "one package, on one system": (before, world(systems, packages, tops[:1])),
        "documentation": (before, world(systems, packages)),
    }


def settings(systems: int) -> Settings:
    """A project with runners for all of them."""
    sites = [
        Site(system=f"system{number:02}", staging="/scratch/ci", root="/apps")
        for number in range(systems)
    ]
    return Settings(systems=sites, push="/apps/cache", caches=["/apps/cache"])


def todos(old: Graphs, new: Graphs, policy: CiPolicy) -> list[Todo]:
    """What each partition asks for; all that was built before is in a cache."""
    there = {node.content for graph in old.values() for node in graph.nodes.values()}
    return [todo(old.get(name), graph, there, policy.validation) for name, graph in new.items()]


def made(found: list[Todo], project: Settings, cost: Callable[[Node], float]) -> Pipelines:
    """The pipelines of a protected branch, which have all kinds of jobs."""
    sites = {site.system: site for site in project.systems}
    targets = [Target(one, sites[one.name.partition("/")[0]], one.name) for one in found]
    return pipelines(targets, project, ci_policy(), Context(trusted=True), cost)


def jobs_of(found: list[Todo], policy: CiPolicy, cost: Callable[[Node], float]) -> None:
    """The jobs alone, to know how much of the time they are."""
    for one in found:
        make_jobs(
            one.graph,
            one.build,
            cost,
            worth=policy.jobs.worth_seconds,
            max_jobs=policy.limit("jobs_per_pipeline"),
            max_needs=policy.limit("needs_per_job"),
        )


def alone(found: list[Todo], cost: Callable[[Node], float]) -> dict[str, list[Job]]:
    """A job for every package."""
    jobs: dict[str, list[Job]] = {}
    for one in found:
        build = set(one.build)
        nodes = [one.graph.nodes[key] for key in one.build]
        jobs[one.name] = [
            Job(node.key, [node.key], [key for key in node.needs if key in build], cost(node))
            for node in nodes
        ]
    return jobs


def zipped(files: dict[str, str]) -> int:
    """Bytes of the archive that GitLab reads child pipelines from."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, text in files.items():
            writer.writestr(name, text)
    return len(archive.getvalue())


def measured(
    name: str, old: Graphs, new: Graphs, cores: int, start: float
) -> tuple[Making, list[Running]]:
    """One change: made, and run on few and many runners."""
    policy, project = ci_policy(), settings(len(new))

    def cost(node: Node) -> float:
        return seconds(node, cores)

    began = time.perf_counter()
    found = todos(old, new, policy)
    decided = time.perf_counter()
    result = made(found, project, cost)
    written = time.perf_counter()
    jobs_of([one for one in found if one.touched], policy, cost)
    grouped = time.perf_counter()
    jobs = [job for listed in result.jobs.values() for job in listed]
    sizes = [len(text.encode()) for text in result.files.values()]
    making = Making(
        change=name,
        builds=sum(len(one.build) for one in found),
        jobs=len(jobs),
        relays=sum(job.relay for job in jobs),
        most_jobs=max(map(len, result.jobs.values()), default=0),
        most_needs=max((len(job.needs) for job in jobs), default=0),
        files=len(sizes),
        largest_bytes=max(sizes),
        all_bytes=sum(sizes),
        zipped_bytes=zipped(result.files),
        todo_s=decided - began,
        jobs_s=grouped - written,
        pipelines_s=written - decided,
    )
    one_each = alone(found, cost)
    running = []
    for runners in RUNNERS:
        ours = simulate(result.jobs, runners, start, cores=cores)
        theirs = simulate(one_each, runners, start, cores=cores)
        running.append(
            Running(
                change=name,
                runners=runners,
                hours=ours.makespan / 3600,
                hours_alone=theirs.makespan / 3600,
                critical_hours=ours.critical_seconds / 3600,
                critical_path=len(ours.critical_path),
                core_hours=ours.core_hours,
                busy=ours.busy,
            )
        )
    return making, running


def chains(new: Graphs, cores: int, start: float) -> dict[str, float]:
    """The longest chain of jobs, as a share of that with a job for every package: per partition."""
    found = todos({}, new, ci_policy())

    def cost(node: Node) -> float:
        return seconds(node, cores)

    ours = made(found, settings(len(new)), cost).jobs
    theirs = alone(found, cost)
    shares = [
        simulate({name: jobs}, 1, start).critical_seconds
        / simulate({name: theirs[name]}, 1, start).critical_seconds
        for name, jobs in ours.items()
    ]
    return {"mean": statistics.mean(shares), "most": max(shares)}


def show(making: list[Making], running: list[Running], shares: dict[str, float]) -> None:
    """Prints all as tables."""
    console = Console()
    policy = ci_policy()
    for title, rows in (("made", making), ("run (simulated)", running)):
        keys = list(asdict(rows[0]))
        table = Table(*(key.replace("_", " ") for key in keys), title=title)
        for row in rows:
            table.add_row(*(_said(value) for value in asdict(row).values()))
        console.print(table)
    console.print(
        f"limits kept: {policy.limit('jobs_per_pipeline'):,} jobs a pipeline, "
        f"{policy.limit('needs_per_job')} needs a job, "
        f"{policy.limit('child_pipeline_bytes'):,} bytes a file"
    )
    console.print(
        "longest chain of jobs, as a share of that with a job for every package: "
        f"mean {shares['mean']:.2f}, most {shares['most']:.2f}"
    )


def _said(value: str | int | float) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=50)
    parser.add_argument("--packages", type=int, default=200, help="of each system")
    parser.add_argument("--cores", type=int, default=8, help="of each runner")
    parser.add_argument("--start", type=float, default=START, help="seconds of a job's start")
    arguments = parser.parse_args()
    making: list[Making] = []
    running: list[Running] = []
    wanted = changes(arguments.systems, arguments.packages)
    for name, (old, new) in wanted.items():
        one, several = measured(name, old, new, arguments.cores, arguments.start)
        making.append(one)
        running += several
    shares = chains(wanted["everything"][1], arguments.cores, arguments.start)
    show(making, running, shares)
    now = datetime.now(UTC)
    path = TOP / "benchmarks" / "results" / f"{now:%Y%m%dT%H%M%SZ}-pipelines.json"
    path.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = {
        "when": now.isoformat(timespec="seconds"),
        "machine": machine(),
        **vars(arguments),
        "made": [asdict(one) for one in making],
        "run": [asdict(one) for one in running],
        "longest_chain_share": shares,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path.relative_to(TOP))


if __name__ == "__main__":
    main()
