"""What the jobs of a pipeline run, each as one call: the commands of ``mvstack ci``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mvstack.cache import gpg
from mvstack.cache.place import place
from mvstack.ci import clones, deployed, handed_lock, measure
from mvstack.ci.build import below, build, padded, rows_of
from mvstack.ci.graph import WHOLE
from mvstack.ci.handover import keyring
from mvstack.ci.sign import sign
from mvstack.ci.stage import stage
from mvstack.install import stages
from mvstack.model.system import System
from mvstack.plan.types import Plan
from mvstack.support.errors import InvalidInput, Missing, MvstackError, Problem, Refused
from mvstack.support.files import write_atomically
from mvstack.support.processes import run
from mvstack.support.progress import Progress
from mvstack.tree.records import Records, mpi_contents

Row = dict[str, Any]
KEY = "MVSTACK_SIGNING_KEY"
"""A file-type, protected variable of GitLab: the site's secret key."""


def caches_of(given: Sequence[str]) -> list[str]:
    """The caches named, then those of MVSTACK_CACHES."""
    return list(dict.fromkeys([*given, *os.environ.get("MVSTACK_CACHES", "").split()]))


def planned(name: str, root: Path | None, command: str) -> tuple[System, Plan]:
    """The system and the plan of the one partition that ``name`` means."""
    system, partitions = stages.load(name)
    partition = stages.only_one(name, partitions, f"ci {command}")
    return system, stages.plan_for(system, partition, None, root)


def build_job(
    name: str,
    nodes: Sequence[str],
    take: Sequence[Path],
    hand: Path,
    trust: Sequence[Path],
    caches: Sequence[str],
    jobs: int | None,
    logs: Path | None,
    root: Path | None,
    length: int,
    progress: Progress,
) -> list[Row]:
    """Build ``nodes`` below a root of this job alone, and hand them on; the rows of their builds.

    Without ``root`` it is a temporary folder, which is gone afterwards. ``logs`` gets junit.xml and
    the logs of what was built here, also when that failed. What Spack is to build must be named in
    a lock that was handed over; the node ``whole`` takes the signed one of a cache, or solves.
    """
    system, first = planned(name, None, "build")
    unknown(first, nodes, name)
    asked = caches_of(caches)
    with _root(root) as place, _lock(first, take, trust, asked, WHOLE not in nodes) as lock:
        plan = stages.plan_for(system, first.partition, None, padded(place, below(first), length))
        clones.shared(plan)
        failed: MvstackError | None = None
        try:
            return build(plan, nodes, take, hand, trust, asked, jobs, progress, lock=lock)
        except MvstackError as error:
            failed = error
            raise
        finally:
            if logs is not None:
                _kept(plan, nodes, logs, failed)


def unknown(plan: Plan, nodes: Sequence[str], name: str) -> None:
    """Raise InvalidInput for a node that EasyBuild's plan has not: it was made from another one."""
    from mvstack.render.partition import build_order

    if plan.builder != "easybuild":
        return
    known = [node.easyconfig for node in build_order(plan)]
    if wrong := [one for one in nodes if one not in known]:
        raise InvalidInput(
            Problem(
                f"{', '.join(wrong)} is no part of this plan",
                name,
                allowed=", ".join(known),
                todo="the pipeline was generated from another commit: run it anew",
            )
        )


@contextlib.contextmanager
def _root(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="mvstack-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _lock(
    plan: Plan, take: Sequence[Path], trust: Sequence[Path], caches: Sequence[str], must: bool
) -> Iterator[Path | None]:
    """Spack's lock: what was handed over, else what a cache has. Raises Refused if it ``must`` be.

    EasyBuild has none.
    """
    if plan.builder != "spack":
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="mvstack-") as folder:
        found = handed_lock.taken(take)
        if found is None:
            with keyring(trust=trust):
                found = handed_lock.signed(plan, caches, Path(folder))
        yield handed_lock.needed(plan, found, [*take, *caches]) if must else found


def _kept(plan: Plan, nodes: Sequence[str], logs: Path, failed: MvstackError | None) -> None:
    rows = rows_of(plan, nodes)
    logs.mkdir(parents=True, exist_ok=True)
    title = f"{plan.system}/{plan.partition}"
    write_atomically(logs / "junit.xml", measure.build_junit(title, rows, failed))
    for row in rows:
        if (log := Path(row.get("log", ""))).is_file():
            shutil.copyfile(log, logs / log.name)


def stage_job(
    name: str,
    take: Sequence[Path],
    trust: Sequence[Path],
    caches: Sequence[str],
    root: Path,
    progress: Progress,
) -> list[Row]:
    """Install all of a partition below ``root``, from handovers and caches alone."""
    system, plan = planned(name, root, "stage")
    site, asked = system.install, caches_of(caches)
    clones.shared(plan)
    with _lock(plan, take, trust, asked, True) as lock:
        return stage(
            *(plan, take, trust, asked, progress), umask=site.umask, group=site.group, lock=lock
        )


def validate_job(
    name: str, root: Path, tags: list[str], work: Path | None, to: Path, progress: Progress
) -> dict[str, Any]:
    """Run checks on what is installed below ``root``; their results, reports of them below ``to``.

    ``work`` is a folder that the cluster's nodes see too; else one in ``root``. Raises CheckFailed
    when ReFrame could not be trusted; failed checks are in the results.
    """
    from mvstack.install.flow import installed_here
    from mvstack.test import run_checks

    tree, plan = installed_here(name, None, root, "ci validate")
    out = (work or root) / f"validate-{tree.name}-{'-'.join(tags) or 'all'}"
    what = ("checks with tag " + ", ".join(tags)) if tags else "all checks"
    to.mkdir(parents=True, exist_ok=True)
    with progress.step("test", what, log=out / "reframe.out") as step:
        try:
            results = run_checks(plan, out, tags, step.note)
        finally:
            for found in ("reframe.out", "reframe.json"):
                if (out / found).is_file():
                    shutil.copyfile(out / found, to / found)
    results["contents"] = mpi_contents(plan, Records(tree).hashes())
    write_atomically(to / "results.json", json.dumps(results, indent=1) + "\n")
    write_atomically(to / "metrics.txt", measure.metrics(results))
    write_atomically(to / "junit.xml", measure.checks_junit(results))
    with contextlib.suppress(OSError):  # what is deployed may belong to somebody else
        stages.keep_results(to / "results.json", tree / "records" / "results")
    return results


def sign_job(
    name: str, take: Sequence[Path], to: str, key: str, progress: Progress
) -> tuple[gpg.Key, list[Row]]:
    """Sign what was handed over, into the cache ``to``, with the site's key.

    The key is that of the file which MVSTACK_SIGNING_KEY names, else one of this user's. Raises
    Missing when the file is not there, Refused for what must not be signed.
    """
    _, plan = planned(name, None, "sign")
    not_committed(take)
    lock = None
    if plan.builder == "spack":
        lock = handed_lock.needed(plan, handed_lock.taken(take), take)
    with _own_key(key) as own:
        rows = sign(plan, take, to, own, progress, lock=lock)
        if lock:
            handed_lock.put(plan, lock, to, own, progress)
        return own, rows


def not_committed(take: Sequence[Path]) -> None:
    """Raise Refused for a handover that stands in the repository: no job of this pipeline made it.

    Where there is no git, there is no repository either.
    """
    words = ["git", "ls-files", "--", *map(str, take)]
    try:
        done = run(words)
    except OSError:
        return
    if done.ok and done.text:
        raise Refused(
            Problem(
                "what is handed over was committed",
                done.text.splitlines()[0],
                because="only what jobs of this pipeline built is signed",
                todo="take it out of the repository",
            ),
            outcome="Nothing was signed.",
        )


@contextlib.contextmanager
def _own_key(wanted: str) -> Iterator[gpg.Key]:
    file = os.environ.get(KEY, "")
    if not file:
        yield gpg.own_key(wanted)
        return
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        raise Missing(
            Problem(
                f"the signing key cannot be read: {error.strerror}",
                KEY,
                todo="make it a variable of type File, protected, in the project's CI/CD settings",
            )
        ) from None
    with keyring():
        yield gpg.take_own(text)


def deploy_job(
    name: str,
    root: Path,
    caches: Sequence[str],
    trust: Sequence[Path],
    results: Path | None,
    state: str,
    progress: Progress,
) -> list[Row]:
    """Install a partition into the shared tree, from signed caches alone.

    ``results`` is a folder that :func:`validate_job` wrote: the checks that these packages passed
    are kept with the tree, for its report. ``state`` is noted in the first of ``caches`` when all
    is done.
    """
    system, plan = planned(name, root, "deploy")
    site = system.install
    with _lock(plan, [], trust, caches, True) as lock:
        rows = stage(
            *(plan, [], trust, list(caches), progress),
            umask=site.umask,
            group=site.group,
            lock=lock,
        )
    if results is not None:
        stages.keep_results(results / "results.json", Path(plan.tree) / "records" / "results")
    if state:
        deployed.note(place(caches[0]), name, state, plan.root)
    return rows
