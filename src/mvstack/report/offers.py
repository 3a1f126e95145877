"""What each partition is offered in a release, and how far that came.

`mvstack list`, `show` and `find` read it, and so do the catalogue's pages (tools/catalogue).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.model.policy import Policy
from mvstack.model.release import Release
from mvstack.model.system import Partition, System
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, MpiBuild, Plan
from mvstack.render.partition import RENDERED
from mvstack.report.seen import Row, counting, read_record
from mvstack.support.errors import InvalidInput, Refused


@dataclass(frozen=True)
class Offer:
    """What one partition gets with all of a release; without a plan, ``because`` says why."""

    system: System
    name: str
    part: Partition
    plan: Plan | None
    because: str
    seen: str

    @property
    def title(self) -> str:
        """``system/partition``."""
        return f"{self.system.name}/{self.name}"

    @property
    def mpi(self) -> list[str]:
        """The modules of its MPI builds, the default first."""
        return [build.module for build in self.plan.mpi] if self.plan else []

    def loading(self, *modules: str) -> list[str]:
        """The lines that a user types to have ``modules``."""
        assert self.plan
        names = " ".join([f"mvapich-stack/{self.plan.release}", *modules])
        return [f"source {self.plan.tree}/init/bash", f"module load {names}"]

    def starting(self, build: MpiBuild) -> str:
        """The line that starts a program in a job, or on a machine without jobs."""
        assert self.plan
        ranks = str(self.plan.job.get("ranks") or self.plan.cores)
        return build.launch.replace("{ranks}", ranks).replace("{program}", "./program")

    def job(self, build: MpiBuild) -> list[str]:
        """The script of a job that runs a program; [] where nothing is submitted."""
        if not (self.plan and self.plan.job):
            return []
        lines = [*self.plan.job["lines"], *self.loading(build.module), self.starting(build)]
        return ["#!/bin/bash", *lines]


@dataclass(frozen=True)
class Planned:
    """What decides all plans; ``rows`` are those of the record that count, by package's module."""

    release: Release
    policy: Policy
    rows: dict[str, list[Row]]

    def every(self) -> Iterator[Offer]:
        """Every partition of every system, but for `local`, which is not looked for."""
        for name in self.release.systems or system_names():
            system = self.release.then(load_system(name))
            yield from (self.offer(system, part) for part in system.partitions)

    def offer(self, system: System, name: str) -> Offer:
        """The plan of a partition with all of the release."""
        plan, because = None, ""
        try:
            plan = make_plan(system, name, self.release, self.policy, Given(profile="full"))
        except (Refused, InvalidInput) as error:
            because = "; ".join(problem.message for problem in error.problems)
        part = system.partitions[name]
        return Offer(system, name, part, plan, because, self._seen(system.name, name, plan))

    def _seen(self, system: str, name: str, plan: Plan | None) -> str:
        """How far a partition came: explained, rendered, concretized."""
        rendered = (RENDERED / system / name).is_dir()
        modules = {package.module for package in plan.packages} if plan else set()
        rows = [(one, row) for one in modules for row in self.rows.get(one, ())]
        where = f" on {system}/{name}"
        done = {one for one, row in rows if row.mpi.endswith(where) and row.state != "failed"}
        if done and len(done) == len(modules):
            return "concretized"
        first = "rendered" if rendered else "explained"
        return f"{first}; {len(done)} of {len(modules)} packages concretized" if done else first


def planned(release_name: str | None = None) -> Planned:
    """What decides the plans of a release; of the newest without a name."""
    release, record = load_release(release_name), read_record()
    rows: dict[str, list[Row]] = {}
    for one in release.packages:
        found = counting(one, release, record)
        rows.setdefault(one.module, []).extend(row for some in found.values() for row in some)
    return Planned(release, load_policy(), rows)
