"""What the jobs of a pipeline run, each as one call: the commands of ``mvstack ci``."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.builders.base import Row, Run, builder_of
from mvstack.builders.spack.install import COMPILER
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.ci import lock
from mvstack.ci.build import below, build, padded, share_builder, stage
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import Given, keyring, note_deployed
from mvstack.ci.sign import sign
from mvstack.install import stages
from mvstack.model.ci import TREE_LENGTH
from mvstack.model.system import System
from mvstack.plan.types import Extent, Plan
from mvstack.support.errors import Missing, Refused, telling
from mvstack.support.files import write_atomically
from mvstack.support.git import git
from mvstack.support.progress import Progress
from mvstack.test.run import checked, keep_results
from mvstack.tree.records import Records, mpi_contents

KEY = "MVSTACK_SIGNING_KEY"
"""A file-type, protected variable of GitLab: the site's secret key."""


@dataclass(frozen=True)
class Job:
    """The partition that a job is for, how much of the release, and what it is given.

    ``compilers`` is the folder with those that Spack builds for pipelines.
    """

    partition: str
    progress: Progress
    given: Given
    profile: str = ""
    compilers: str = ""

    def planned(self, command: str, root: Path | None = None) -> tuple[System, Plan]:
        """The system and the plan of the partition."""
        system, partitions = stages.load(self.partition)
        part = stages.only_one(self.partition, partitions, f"ci {command}")
        return system, self.plan(system, part, root)

    def plan(self, system: System, part: str, root: Path | None = None) -> Plan:
        """The plan below ``root``, over the compiler that pipelines share."""
        plan = stages.plan_for(system, part, None, root, extent=Extent(self.profile))
        return lock.over_compilers(plan, self.compilers)

    @contextlib.contextmanager
    def with_lock(self, plan: Plan, *, must: bool = True) -> Iterator[Given]:
        """What the job is given, with Spack's lock: from a handover, else signed from a cache.

        EasyBuild has none. Raises Refused when there ``must`` be one and none is found, Missing
        without the compiler that Spack builds.
        """
        if not builder_of(plan.builder).solves:
            yield self.given
            return
        lock.refuse_lost_compiler(plan, self.compilers)
        take, caches = self.given.take, self.given.caches
        with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
            found = lock.taken(take)
            if found is None:
                with keyring(trust=self.given.trust):
                    found = lock.signed(plan, caches, Path(folder))
            if must and found is None:
                asked = ", ".join(map(str, [*take, *caches]))
                raise Refused(
                    f"there is no lock of what {builder_of(plan.builder).title} is to install",
                    f"{plan.system}/{plan.partition}",
                    found=f"no lock in: {asked or 'no place at all'}",
                    because="packages are kept under hashes that the lock names, and solving again "
                    "may give others",
                    todo="run the whole pipeline again at this commit: its jobs hand the lock on, "
                    "and the job `sign` puts it into the site's cache",
                    outcome="Nothing was installed.",
                )
            yield replace(self.given, lock=found)


@dataclass(frozen=True)
class Building:
    """What a build job makes and how: ``nodes``, handed on in ``hand``.

    Without ``root`` it builds in a temporary folder. ``length`` is how many characters the path of
    the tree has. ``logs`` is a folder that gets the logs, also when the build failed.
    """

    nodes: Sequence[str]
    hand: Path
    jobs: int | None = None
    logs: Path | None = None
    root: Path | None = None
    length: int = TREE_LENGTH


def build_job(job: Job, what: Building) -> list[Row]:
    """Build nodes below a root of this job alone, and hand them on; the rows of their builds.

    What Spack is to build must be named in a lock that was handed over; the node ``whole`` takes
    the signed one of a cache, or solves.
    """
    if what.nodes == [*COMPILER]:
        return _compiler_job(job, what)
    system, first = job.planned("build")
    with (
        tempfile.TemporaryDirectory(prefix="mvstack-", ignore_cleanup_errors=True) as own,
        job.with_lock(first, must=WHOLE not in what.nodes) as given,
    ):
        long = padded(what.root or Path(own), below(first), what.length)
        plan = job.plan(system, first.partition, long)
        share_builder(plan)
        try:
            return build(plan, what.nodes, what.hand, given, job.progress, what.jobs)
        finally:
            if what.logs is not None:
                what.logs.mkdir(parents=True, exist_ok=True)
                for log in (Path(plan.tree) / "logs").glob("*.log"):
                    shutil.copyfile(log, what.logs / log.name)


def _compiler_job(job: Job, what: Building) -> list[Row]:
    """Build the compiler where all jobs and users find it; nothing is handed on."""
    system, partitions = stages.load(job.partition)
    part = stages.only_one(job.partition, partitions, "ci build")
    first = stages.plan_for(system, part, None, None, extent=Extent(job.profile))
    lock.over_compilers(first, job.compilers)  # raises where no folder is named
    plan = lock.of_compiler(first, job.compilers)
    share_builder(plan)
    fetcher, install = stages.fetcher_for(plan.root, job.progress), system.install
    told = (fetcher, job.progress, what.jobs, install.umask, install.group)
    return builder_of(plan.builder).install(plan, Run(*told, wanted=COMPILER))


def stage_job(job: Job, root: Path) -> list[Row]:
    """Install all of a partition below ``root``, from handovers and caches alone."""
    system, plan = job.planned("stage", root)
    share_builder(plan)
    with job.with_lock(plan) as given:
        return stage(plan, given, job.progress, system.install)


def validate_job(
    name: str, root: Path, tags: list[str], work: Path | None, to: Path, progress: Progress
) -> dict[str, Any]:
    """Run checks on what is installed below ``root``; their results, with reports below ``to``.

    ``work`` is a folder that the cluster's nodes see too; else one in ``root``. Raises CheckFailed
    when ReFrame could not be trusted; failed checks are in the results.
    """
    tree, plan = stages.installed_here(name, None, root, "ci validate")
    out = (work or root) / f"validate-{tree.name}-{'-'.join(tags) or 'all'}"
    to.mkdir(parents=True, exist_ok=True)
    try:
        results = checked(plan, out, tags, progress)
    finally:
        for found in ("reframe.out", "reframe.json", "junit.xml"):
            if (out / found).is_file():
                shutil.copyfile(out / found, to / found)
    results["contents"] = mpi_contents(plan, Records(tree).hashes())
    write_atomically(to / "results.json", json.dumps(results, indent=1) + "\n")
    with contextlib.suppress(OSError):  # what is deployed may belong to somebody else
        keep_results(to / "results.json", tree / "records" / "results")
    return results


def sign_job(job: Job, to: str, key: str) -> tuple[gpg.Key, list[Row]]:
    """Sign what was handed over, into the cache ``to``, with the site's key.

    The key is that of the file which MVSTACK_SIGNING_KEY names, else one of this user's. Raises
    Missing when the file is not there, Refused for what must not be signed.
    """
    system, plan = job.planned("sign")
    os.umask(int(system.install.umask, 8))  # who signs next may be another user of the site's group
    take = job.given.take
    not_committed(take)
    with job.with_lock(plan) as given, _own_key(key) as own:
        rows = sign(plan, take, to, own, job.progress, given.lock)
        if given.lock:
            lock.put(plan, given.lock, to, own, job.progress)
        return own, rows


def not_committed(take: Sequence[Path]) -> None:
    """Raise Refused for a handover that is in the repository: no job of this pipeline made it.

    Where there is no git, there is no repository either.
    """
    try:
        done = git(Path(), "ls-files", "--", *map(str, take))
    except Missing:
        return
    if done.ok and done.text:
        raise Refused(
            "what is handed over was committed",
            done.text.splitlines()[0],
            because="only what jobs of this pipeline built is signed",
            todo="remove it from the repository",
            outcome="Nothing was signed.",
        )


@contextlib.contextmanager
def _own_key(wanted: str) -> Iterator[gpg.Key]:
    file = os.environ.get(KEY, "")
    if not file:
        yield gpg.own_key(wanted)
        return
    todo = "make it a variable of type File, protected, in the project's CI/CD settings"
    with telling(Missing, "the signing key cannot be read", where=KEY, todo=todo):
        text = Path(file).read_bytes()
    with keyring():
        yield gpg.take_own(text)


def deploy_job(job: Job, root: Path, results: Path | None = None, state: str = "") -> list[Row]:
    """Install a partition into the shared tree, from signed caches alone.

    ``results`` is a folder that :func:`validate_job` wrote: the checks that these packages passed
    are kept with the tree, for its report. ``state`` is noted in the first cache at the end.
    """
    system, plan = job.planned("deploy", root)
    with job.with_lock(plan) as given:
        rows = stage(plan, given, job.progress, system.install)
    if results is not None:
        keep_results(results / "results.json", Path(plan.tree) / "records" / "results")
    if state:
        note_deployed(place(job.given.caches[0]), job.partition, state, plan.root)
    return rows
