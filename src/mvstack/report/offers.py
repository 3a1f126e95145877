"""What each partition is offered in a release, and how far that came.

`mvstack list` and `show` read it, and so do the catalogue's pages (tools/catalogue).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mvstack.model.load import load_policy, load_release, load_system, system_names
from mvstack.model.policy import Policy
from mvstack.model.release import Release
from mvstack.model.system import Partition, System
from mvstack.plan.make import make_plan
from mvstack.plan.types import Given, MpiBuild, Plan
from mvstack.render.partition import RENDERED
from mvstack.render.templates import template
from mvstack.report import seen
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
        job = self.plan.job if self.plan else {}
        return template(job["script"], plan=self.plan, build=build).splitlines() if job else []


@dataclass(frozen=True)
class Planned:
    """What decides all plans; ``rows`` are those of the record that count, by package's module."""

    release: Release
    policy: Policy
    rows: dict[str, list[seen.Row]]
    locks: dict[str, seen.Locked]

    def every(self) -> Iterator[Offer]:
        """Every partition of every system, but for `local`, which is not looked for."""
        for name in self.release.systems or system_names():
            system = self.release.then(load_system(name))
            yield from (self.offer(system, part) for part in system.partitions)

    def offer(self, system: System, name: str, root: str = "") -> Offer:
        """The plan of a partition with all of the release, below ``root`` or that of its file."""
        plan, because = None, ""
        try:
            plan = make_plan(system, name, self.release, self.policy, Given(root, profile="full"))
        except (Refused, InvalidInput) as error:
            because = "; ".join(problem.message for problem in error.problems)
        part = system.partitions[name]
        return Offer(system, name, part, plan, because, self._seen(f"{system.name}/{name}", plan))

    def _seen(self, title: str, plan: Plan | None) -> str:
        """How far a partition came: explained, rendered, concretized with its default packages."""
        state = "rendered" if (RENDERED / title).is_dir() else "explained"
        first = {one.module for one in self.release.packages if one.profile == "default"}
        modules = {package.module for package in plan.packages} if plan else set()
        rows = [(one, row) for one in modules for row in self.rows.get(one, ())]
        where, lock = f" on {title}", self.locks.get(title)
        done = {one for one, row in rows if row.mpi.endswith(where) and row.state != "failed"}
        if lock and plan:
            default = [one for one in plan.packages if one.module in first]
            if lock.key == seen.key_of(replace(plan, packages=default), lock.recipes):
                state, done = "concretized", done | (modules & first)
        if not done or done == modules:
            return state
        return f"{state}; {len(done)} of {len(modules)} packages concretized"


def planned(release_name: str | None = None) -> Planned:
    """What decides the plans of a release; of the newest without a name."""
    release, record = load_release(release_name), seen.read_record()
    rows: dict[str, list[seen.Row]] = {}
    for one in release.packages:
        found = seen.counting(one, release, record)
        rows.setdefault(one.module, []).extend(row for some in found.values() for row in some)
    locks = seen.read_rows(seen.LOCKED, seen.Locked, "tests/spack/lock_systems")
    known = {one.partition: one for one in locks if one.release == release.name}
    return Planned(release, load_policy(), rows, known)
