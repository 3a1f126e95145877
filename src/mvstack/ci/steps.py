"""What the jobs of a pipeline run, each as one call: the commands of ``mvstack ci``."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvstack.builders.base import Row, Run, builder_of
from mvstack.builders.spack.install import COMPILER
from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.ci import lock
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import Given, job_key, keyring, note_deployed, shared
from mvstack.ci.sign import sign
from mvstack.install import stages
from mvstack.install.stages import fetcher_for
from mvstack.model.ci import TREE_LENGTH
from mvstack.model.system import Install, System
from mvstack.plan.types import Extent, Plan
from mvstack.support.errors import InvalidInput, Missing, Refused, telling
from mvstack.support.files import full, write_atomically
from mvstack.support.git import git
from mvstack.support.progress import Progress
from mvstack.test.run import checked, keep_results
from mvstack.tree.records import Records, mpi_contents

DEFAULTS = Install()
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


def padded(root: Path, below: str, length: int = TREE_LENGTH) -> Path:
    """``root`` made so long that the tree ``below`` it has a path of ``length`` characters.

    ``below`` is the path of the tree below its root (``2026.11/mycluster-cpu``). A package can only
    be moved to a tree whose path is not longer than that where it was built (mvstack.cache.prefix),
    so a job builds below a long path, and the site installs where it wants.

    96 characters: a script may name its interpreter in at most 127 (Linux until 5.0, RHEL 8), and
    ``#!/bin/sh <tree>/software/bin/sbang``, which Spack writes, has 29 beside the tree's.

    Raises InvalidInput when the path is longer already.
    """
    root = full(root)
    found = len(str(root)) + 1 + len(below)
    if found == length:
        return root
    lacking = length - found - 1  # the slash before what is filled in
    if lacking < 1:
        raise InvalidInput(
            "the folder to build in has too long a path",
            str(root),
            found=f"{found} characters with {below}",
            allowed=f"at most {length - 2}",
            because="all jobs build below a path of the same length, so that what they build "
            "can be moved from each to each and to the site's install root",
            todo="give a shorter --root, e.g. one below /tmp",
        )
    return root / ("_" * lacking)


def below(plan: Plan) -> str:
    """The path of a plan's tree below its root."""
    return str(Path(plan.tree).relative_to(plan.root))


def build(
    plan: Plan,
    nodes: Iterable[str],
    hand: Path,
    given: Given,
    progress: Progress,
    jobs: int | None = None,
) -> list[Row]:
    """Build ``nodes`` of ``plan`` below its root and put them into the cache ``hand``.

    ``nodes`` are easyconfigs, or DAG hashes of a lock; the node WHOLE is all of a plan with a
    solver, solved for here if there is no lock, and its lock is handed on. What they stand on is
    taken from what was ``given``: handovers, then caches. A node that one of these has already is
    taken and not handed on again. The rows are those of builds.jsonl, with ``handed`` (bytes of the
    archive) where it was handed on.

    Raises Refused when something that is needed was not handed over or must not be used, and what
    :meth:`mvstack.builders.base.Builder.install` raises.
    """
    wanted, builder = frozenset(nodes), builder_of(plan.builder)
    fetcher = fetcher_for(plan.root)
    with given.opened() as caches:
        only = None if WHOLE in wanted else wanted
        run = Run(fetcher, progress, jobs=jobs, caches=caches, wanted=only, lock=given.lock)
        rows = builder.install(plan, run)
        cached = {_key_of(row) for row in rows if row["result"] == "cached" or "from" in row}
        if only is None:
            wanted = builder.installed(plan)
            builder.hand_on(plan, hand / lock.FOLDER)
        pushed = []
        if made := wanted - cached:
            # the key is made after the build: what a build runs cannot sign with it
            with progress.step("hand over", f"{len(made)} packages in {hand}"):
                to, key = place(str(hand)), job_key()
                pushed = builder.push(plan.as_dict(), to, key, progress, only=made)
        else:
            progress.skip("hand over", str(hand), "all of it came from caches")
    sizes = {_key_of(row): row["bytes"] for row in pushed}
    return [
        {**row, "handed": sizes[_key_of(row)]} if _key_of(row) in sizes else row for row in rows
    ]


def stage(plan: Plan, given: Given, progress: Progress, site: Install = DEFAULTS) -> list[Row]:
    """Install all of ``plan`` below its root from what was ``given``, and build nothing.

    Packages are believed when signed by a key of ``trust`` or by one that lies in a handover. The
    rows are those of builds.jsonl. Raises Refused for what none of them has or what must not be
    used, Locked, Missing.
    """
    with given.opened(only=True) as caches:
        if not caches.places:
            raise Refused(
                "nothing was handed over and no cache is named",
                f"{plan.system}/{plan.partition}",
                found=f"no cache in: {', '.join(map(str, given.take)) or 'no folder at all'}",
                todo="give the folders of the build jobs with --take, or name the site's cache",
                outcome="Nothing was installed.",
            )
        run = Run(
            fetcher_for(plan.root),
            progress,
            umask=site.umask,
            group=site.group,
            caches=caches,
            lock=given.lock,
        )
        return builder_of(plan.builder).install(plan, run)


def _key_of(row: Row) -> str:
    """The node that a row of builds.jsonl is about: its easyconfig, or its DAG hash."""
    return str(row.get("easyconfig") or row["hash"])


def share_builder(plan: Plan) -> None:
    """Link the builder's own clones and sources below the root of ``plan`` to what jobs share.

    A job's own root is gone after it. Sources may have a place of their own (MVSTACK_SOURCES). A
    root that has its own keeps them.
    """
    folder = shared()
    sources = full(os.environ.get("MVSTACK_SOURCES") or folder / "sources")
    sources.mkdir(parents=True, exist_ok=True)
    Path(plan.root).mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (Path(plan.root) / "sources").symlink_to(sources)
    builder_of(plan.builder).share(plan, folder)


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
    fetcher, install = fetcher_for(plan.root), system.install
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
